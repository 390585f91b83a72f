"""Limits what all calls to one provider do together: how many at once, how many a minute, and none while it is down."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Protocol, Self

from aiolimiter import AsyncLimiter
from circuitbreaker import CircuitBreaker

from evalake.core.configuration import Limits
from evalake.models.failures import PROVIDER_DOWN, AttemptFailed

# Conditions for an attempt of a call beside its provider's limits, such as a run's ceiling.


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


# A hiccup that hits the first attempts of many concurrent calls at once is no dead provider; that their retries fail,
# too, is. Timeouts need no such proof, for each of them took its whole time.
_TELLING_ATTEMPT = 3


class RateLimiter:
    """The limits of one provider. Made and used on one event loop."""

    def __init__(self, provider: str, limits: Limits):
        self.provider = provider
        self.limits = limits
        self.in_flight = 0
        """Calls that have acquired their turn and have not ended yet."""
        self.slots = asyncio.Semaphore(limits.concurrency)
        self._rate = _rate(limits.requests_per_minute) if limits.requests_per_minute else None
        self._queue = asyncio.Lock()
        self._breaker = CircuitBreaker(
            failure_threshold=limits.breaker_failures,
            recovery_timeout=limits.breaker_seconds,
            expected_exception=AttemptFailed,
            name=provider,
        )

    def acquire(self, refuse: Callable[[], None]) -> "Slot":
        """Make a context that, when it is entered, waits for a slot and for the rate, and then holds the slot.

        `refuse` raises where no call is wanted any more, now or after a wait.
        """
        return Slot(self, refuse)

    async def wait_for_rate(self, refuse: Callable[[], None]) -> None:
        """Wait until another call may begin; `refuse` as in `acquire`."""
        if self._rate is not None:
            async with self._queue:  # one waits for the rate; the others behind it are refused without a wait
                refuse()
                await self._rate.acquire()
                refuse()

    def refuse_if_open(self) -> None:
        """Raise AttemptFailed (circuit_open) while the provider counts as down."""
        if self._breaker.opened:
            raise AttemptFailed(
                "circuit_open",
                f"provider {self.provider} counts as down after {self._breaker.failure_count} failures in a row"
                f" (the last: {self._breaker.last_failure})",
            )

    def succeeded(self) -> None:
        """Note that the provider answered."""
        self._breaker.reset()

    def failed(self, failure: AttemptFailed, attempt: int) -> None:
        """Note that the call's attempt number `attempt` (from 1) failed; a refusal counts as an answer."""
        if failure.kind not in PROVIDER_DOWN:
            self._breaker.reset()
        elif failure.kind == "timeout" or attempt >= min(_TELLING_ATTEMPT, self.limits.attempts):
            with suppress(AttemptFailed), self._breaker:
                raise failure


class Slot:
    """The right to make one of the provider's calls."""

    def __init__(self, limiter: RateLimiter, refuse: Callable[[], None]):
        self._limiter = limiter
        self._refuse = refuse
        self._is_held = False
        self.queue_ms = 0.0
        """Milliseconds until it was held and the rate allowed a call, without those for which it was lent."""

    async def __aenter__(self) -> Self:
        asked = time.perf_counter()
        try:
            await self.take()
            await self._limiter.wait_for_rate(self._refuse)
        except BaseException:
            self.give_back()
            raise
        self.queue_ms = (time.perf_counter() - asked) * 1000
        return self

    async def __aexit__(self, *_: object) -> None:
        self.give_back()

    async def take(self) -> None:
        """Wait for the slot."""
        await self._limiter.slots.acquire()
        self._is_held = True
        self._limiter.in_flight += 1
        self._refuse()

    def give_back(self) -> None:
        """Release the slot, where it is held."""
        if self._is_held:
            self._is_held = False
            self._limiter.in_flight -= 1
            self._limiter.slots.release()

    @asynccontextmanager
    async def lend(self) -> AsyncIterator[None]:
        """Release the slot for the length of a block, and for good where that ends by an exception."""
        self.give_back()
        yield
        await self.take()


def _rate(requests_per_minute: float) -> AsyncLimiter:
    """Make a limiter of even pacing: a burst of one second's worth (at least one request), not of a whole minute's."""
    burst = max(1.0, requests_per_minute / 60)
    return AsyncLimiter(burst, time_period=burst * 60 / requests_per_minute)
