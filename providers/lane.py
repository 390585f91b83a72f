"""What all calls to one provider share: slots, rate and circuit breaker."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from aiolimiter import AsyncLimiter
from circuitbreaker import CircuitBreaker

from contracts.configuration import Limits
from providers.failures import PROVIDER_DOWN, AttemptFailed

# A hiccup that hits the first attempts of many concurrent calls at once is no dead provider; that their retries fail,
# too, is. Timeouts need no such proof: they have been patient already.
_TELLING_ATTEMPT = 3


class Lane:
    """The limits of one provider. Made and used on one event loop."""

    def __init__(self, provider: str, limits: Limits):
        self.provider = provider
        self.limits = limits
        self.slots = asyncio.Semaphore(limits.concurrency)
        self._limiter = _limiter(limits.requests_per_minute) if limits.requests_per_minute else None
        self._queue = asyncio.Lock()
        self._breaker = CircuitBreaker(
            failure_threshold=limits.breaker_failures,
            recovery_timeout=limits.breaker_seconds,
            expected_exception=AttemptFailed,
            name=provider,
        )

    async def turn(self, refuse: Callable[[], None]) -> None:
        """Wait until the rate allows one more request. `refuse` raises where none is wanted, now or by then."""
        refuse()
        if self._limiter is None:
            return
        async with self._queue:  # one waits for the rate; the others behind it are refused without a wait
            refuse()
            await self._limiter.acquire()
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
        """Note that the call's attempt number `attempt` (from 1) failed; an answer that refuses is an answer."""
        if failure.kind not in PROVIDER_DOWN:
            self._breaker.reset()
        elif failure.kind == "timeout" or attempt >= min(_TELLING_ATTEMPT, self.limits.attempts):
            with suppress(AttemptFailed), self._breaker:
                raise failure


def _limiter(requests_per_minute: float) -> AsyncLimiter:
    """Even pacing: a burst of one second's worth (at least one request), not of a whole minute's."""
    burst = max(1.0, requests_per_minute / 60)
    return AsyncLimiter(burst, time_period=burst * 60 / requests_per_minute)
