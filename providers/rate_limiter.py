"""Limits what all calls to one provider do together: how many at once, how many a minute, and none while it is down."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from aiolimiter import AsyncLimiter
from circuitbreaker import CircuitBreaker

from core.configuration import Limits
from providers.failures import PROVIDER_DOWN, AttemptFailed

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
        self._slots = asyncio.Semaphore(limits.concurrency)
        self._rate = _rate(limits.requests_per_minute) if limits.requests_per_minute else None
        self._queue = asyncio.Lock()
        self._breaker = CircuitBreaker(
            failure_threshold=limits.breaker_failures,
            recovery_timeout=limits.breaker_seconds,
            expected_exception=AttemptFailed,
            name=provider,
        )

    @asynccontextmanager
    async def acquire(self, refuse: Callable[[], None]) -> AsyncIterator[float]:
        """Wait for a slot and for the rate, and hold the slot; gives the milliseconds that it took.

        `refuse` raises where no call is wanted any more, now or after the wait.
        """
        asked = time.perf_counter()
        async with self._slots:
            refuse()
            if self._rate is not None:
                async with self._queue:  # one waits for the rate; the others behind it are refused without a wait
                    refuse()
                    await self._rate.acquire()
                    refuse()
            self.in_flight += 1
            try:
                yield (time.perf_counter() - asked) * 1000
            finally:
                self.in_flight -= 1

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
        """Note that the call's attempt number `attempt` (from 1) failed; an answer that refuses is an answer."""
        if failure.kind not in PROVIDER_DOWN:
            self._breaker.reset()
        elif failure.kind == "timeout" or attempt >= min(_TELLING_ATTEMPT, self.limits.attempts):
            with suppress(AttemptFailed), self._breaker:
                raise failure


def _rate(requests_per_minute: float) -> AsyncLimiter:
    """Even pacing: a burst of one second's worth (at least one request), not of a whole minute's."""
    burst = max(1.0, requests_per_minute / 60)
    return AsyncLimiter(burst, time_period=burst * 60 / requests_per_minute)
