"""Limits all calls to one provider: concurrency, requests per minute, and a circuit breaker."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Protocol, Self

from aiolimiter import AsyncLimiter
from circuitbreaker import CircuitBreaker

from evalake.core.configuration import Limits
from evalake.models.failures import PROVIDER_DOWN, AttemptFailed

WithoutSlot = Callable[[], AbstractAsyncContextManager[None]]
"""Creates a context that frees the provider's slot for other calls."""


class Admit(Protocol):
    """A further condition for an attempt, like a run's ceiling; raises AttemptFailed to refuse it."""

    async def __call__(self, failed_cost_usd: float, without_slot: WithoutSlot) -> None:
        """Wait until the attempt may begin.

        Args:
            failed_cost_usd: The cost of the call's failed attempts.
            without_slot: Entered while the call waits for others, which may need the slot.
        """


async def always(failed_cost_usd: float, without_slot: WithoutSlot) -> None:
    """Admit every attempt."""


Breakers = dict[str, CircuitBreaker]
"""The circuit breakers of providers, which several clients of a process may share."""

# One short outage can fail the first attempts of many concurrent calls, so the breaker counts failures from this
# attempt on; it counts every timeout.
_COUNTED_FROM_ATTEMPT = 3


class RateLimiter:
    """The limits of one provider, on one event loop."""

    def __init__(self, provider: str, limits: Limits, breakers: Breakers):
        self.provider = provider
        self.limits = limits
        self.in_flight = 0
        """Calls that hold a slot."""
        self.slots = asyncio.Semaphore(limits.concurrency)
        self._rate = _rate(limits.requests_per_minute) if limits.requests_per_minute else None
        self._queue = asyncio.Lock()
        breaker = CircuitBreaker(limits.breaker_failures, limits.breaker_seconds, AttemptFailed, provider)
        self._breaker = breakers.setdefault(provider, breaker)

    def acquire(self, refuse: Callable[[], None]) -> "Slot":
        """Create a context that waits for a slot and for the rate, and holds the slot.

        `refuse` raises where no further call may begin; it is called after each wait.
        """
        return Slot(self, refuse)

    async def wait_for_rate(self, refuse: Callable[[], None]) -> None:
        """Wait until another call may begin; `refuse` as in `acquire`."""
        if self._rate is not None:
            async with self._queue:  # so that calls in the queue are refused without waiting for the rate
                refuse()
                await self._rate.acquire()
                refuse()

    def require_closed_circuit(self) -> None:
        """Raise AttemptFailed (circuit_open) while the circuit is open."""
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
        elif failure.kind == "timeout" or attempt >= min(_COUNTED_FROM_ATTEMPT, self.limits.attempts):
            with suppress(AttemptFailed), self._breaker:
                raise failure


class Slot:
    """The right to make one of the provider's calls."""

    def __init__(self, limiter: RateLimiter, refuse: Callable[[], None]):
        self._limiter = limiter
        self._refuse = refuse
        self._is_held = False
        self.queue_ms = 0.0
        """Milliseconds of waiting for the slot and the rate, before it was first held."""

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
        """Release the slot if it is held."""
        if self._is_held:
            self._is_held = False
            self._limiter.in_flight -= 1
            self._limiter.slots.release()

    @asynccontextmanager
    async def lend(self) -> AsyncIterator[None]:
        """Release the slot during a block; an exception keeps it released."""
        self.give_back()
        yield
        await self.take()


def _rate(requests_per_minute: float) -> AsyncLimiter:
    """Create a limiter with an even rate: bursts of one second's requests, at least one."""
    burst = max(1.0, requests_per_minute / 60)
    return AsyncLimiter(burst, time_period=burst * 60 / requests_per_minute)
