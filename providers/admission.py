"""Conditions for an attempt of a call beside its provider's limits, such as a run's ceiling."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

WithoutSlot = Callable[[], AbstractAsyncContextManager[None]]
"""Makes a context in which the slot of the provider is free for other calls."""


class Admit(Protocol):
    """Awaited before each attempt of a call; raises AttemptFailed to refuse it."""

    async def __call__(self, failed_cost_usd: float, without_slot: WithoutSlot) -> None:
        """Wait until the attempt may be made.

        Args:
            failed_cost_usd: What failed attempts of the call have cost.
            without_slot: Entered while the call waits for others, which may need the slot to end.
        """


async def always(failed_cost_usd: float, without_slot: WithoutSlot) -> None:
    """Admit every attempt."""
