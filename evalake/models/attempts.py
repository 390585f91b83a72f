"""Makes a call: attempts within the limits of its provider (concurrency, rate, circuit breaker), until one succeeds.

Only this module retries.
"""

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self

from aiolimiter import AsyncLimiter
from circuitbreaker import CircuitBreaker

from evalake.core.configuration import Configuration, Limits
from evalake.core.errors import ProviderError
from evalake.models.direct import DirectCalls, Timing, Transport, warm_up
from evalake.models.failures import PROVIDER_DOWN, RETRIED, STOPS_MODEL, AttemptFailed, classify_error
from evalake.models.litellm_calls import ask_litellm
from evalake.models.replies import ProviderAnswer, reply_of
from evalake.models.request import Baseline, Failure, Function, Reply, Request, answer_by_baseline
from evalake.models.routes import CLIENT_OWNED, Route, Routes
from evalake.models.telemetry import record_call

WithoutSlot = Callable[[], contextlib.AbstractAsyncContextManager[None]]
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
LONGEST = 30  # the longest time of a streamed answer, as a multiple of the longest silence


class AnswerTimeout:
    """The timeout of an attempt: for the whole answer, or for each piece of a streamed one."""

    def __init__(self, seconds: float, stream: bool) -> None:
        self.deadline = asyncio.timeout(seconds)
        self._seconds, self._stream = seconds, stream
        self._loop = asyncio.get_running_loop()
        self._end = self._loop.time() + LONGEST * seconds

    def on_data(self) -> None:
        """Extend the deadline after a piece of the answer."""
        if self._stream:
            self.deadline.reschedule(min(self._loop.time() + self._seconds, self._end))

    @property
    def message(self) -> str:
        """The error message of the timeout."""
        if self._stream and self._loop.time() < self._end:
            return f"no data for {self._seconds:g} seconds"
        return f"no complete reply within {self._seconds * (LONGEST if self._stream else 1):g} seconds"


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

    async def wait_for_rate(self, refuse: Callable[[], None]) -> None:
        """Wait until another call may begin; `refuse` as of a `Slot`."""
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
            with contextlib.suppress(AttemptFailed), self._breaker:
                raise failure


class Slot:
    """A context that waits for the right to make one of the provider's calls, and for the rate, and holds it.

    `refuse` raises where no further call may begin; it is called after each wait.
    """

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

    @contextlib.asynccontextmanager
    async def lend(self) -> AsyncIterator[None]:
        """Release the slot during a block; an exception keeps it released."""
        self.give_back()
        yield
        await self.take()


def _rate(requests_per_minute: float) -> AsyncLimiter:
    """Create a limiter with an even rate: bursts of one second's requests, at least one."""
    burst = max(1.0, requests_per_minute / 60)
    return AsyncLimiter(burst, time_period=burst * 60 / requests_per_minute)


Outcome = Reply | Failure

LONGEST_BACKOFF_SECONDS = 30.0
LONGEST_RETRY_AFTER_SECONDS = 120.0  # the longest pause that a provider can ask for


class CallsEndedError(ProviderError):
    """The client makes no further calls."""


@dataclass(slots=True)
class _CallState:
    """The state of a call: its attempts, times and costs."""

    attempts: int = 0
    begun: int = 0  # nanoseconds since 1970; 0 before the first attempt
    queue_ms: float = 0.0
    waited_ms: float = 0.0
    concurrency: int | None = None
    failed_cost_usd: float | None = None
    elapsed_ms: float | None = None  # of the last attempt
    timing: Timing = field(default_factory=Timing)
    tried: tuple[str, ...] = ()  # what became of each attempt that failed

    def add_cost(self, failure: AttemptFailed) -> None:
        """Add a failed attempt's words, and its cost, where it is known."""
        self.tried = (*self.tried, f"{failure.kind}: {failure.message}")
        if failure.cost_usd is not None:
            self.failed_cost_usd = (self.failed_cost_usd or 0.0) + failure.cost_usd

    def reply(self, reply: Reply) -> Reply:
        """Add the attempts, times and costs of the call to its reply."""
        timing = self.timing
        times = {name: getattr(timing, name) for name in ("latency_ms", "connect_ms", "first_byte_ms")}
        return replace(reply, **times, **self._of_attempts())

    def failure(self, failure: AttemptFailed) -> Failure:
        """Build the failure of the call from its last attempt's."""
        timed = {"latency_ms": self.elapsed_ms, **self._of_attempts()}
        return Failure(failure.kind, failure.message, tried=self.tried, **timed)

    def _of_attempts(self) -> dict[str, Any]:
        shared = ("attempts", "queue_ms", "waited_ms", "concurrency", "failed_cost_usd")
        return {name: getattr(self, name) for name in shared}


class Caller:
    """Makes the calls of one client, on its event loop. `require_going_on` raises where no further attempt begins."""

    def __init__(
        self,
        configuration: Configuration,
        routes: Routes,
        backoff_seconds: float,
        breakers: Breakers,
        require_going_on: Callable[[], None],
    ) -> None:
        self._configuration = configuration
        self._breakers = breakers
        self._routes = routes
        self._backoff_seconds = backoff_seconds
        self._require_going_on = require_going_on
        self._limiters: dict[str, RateLimiter] = {}
        self._transport = Transport()
        self._direct = DirectCalls(self._transport)
        self._import: asyncio.Task[None] | None = None  # of LiteLLM; baselines do not need it
        self.waiting = 0
        """Calls that wait for their provider's limits, or for the next attempt."""
        self.stopped: dict[str, str] = {}
        """The reason for which a model is no longer called, by model."""

    async def complete(self, request: Request, admit: Admit) -> Outcome:
        """Attempt the request until an attempt succeeds or no retry is allowed."""
        # On a thread, because a secret may have to be fetched
        route = self._routes.found.get(request.model)
        if route is None:
            route = await asyncio.to_thread(self._routes.find, request.model)
        if route.baseline is not None:
            return await _answer_here(route.baseline, request, admit)
        if owned := sorted(CLIENT_OWNED & request.parameters.keys()):
            names = ", ".join(owned)
            raise ProviderError(f"a request to {request.model} cannot set {names}, which the client sets")
        await self._import_litellm()
        limiter = self._limiter(route.provider)
        state = _CallState()
        while True:
            try:
                outcome: Outcome = state.reply(await self._attempt(request, route, limiter, state, admit))
                break
            except AttemptFailed as failure:
                state.add_cost(failure)
                if failure.kind == "content_policy":  # the model's own answer; error answers are not billed
                    outcome = state.reply(Reply(None, finish_reason="content_filter", cost_usd=0.0))
                    break
                if failure.kind not in RETRIED or state.attempts >= limiter.limits.attempts:
                    outcome = state.failure(failure)
                    break
                pause = self._pause_seconds(state.attempts, failure.retry_after)
            with self._waits():
                await asyncio.sleep(pause)
            state.waited_ms += pause * 1000
        record_call(request, route, outcome, state.begun)
        return outcome

    async def close(self) -> None:
        """Close all connections."""
        await self._transport.close()

    @contextlib.contextmanager
    def _waits(self) -> Iterator[None]:
        self.waiting += 1
        try:
            yield
        finally:
            self.waiting -= 1

    def _limiter(self, provider: str) -> RateLimiter:
        if provider not in self._limiters:
            self._limiters[provider] = RateLimiter(provider, self._configuration.limits(provider), self._breakers)
        return self._limiters[provider]

    async def _import_litellm(self) -> None:
        """Import LiteLLM once, on a thread, because it takes seconds."""
        if self._import is None:
            self._import = asyncio.create_task(asyncio.to_thread(warm_up))
        if not self._import.done():
            await asyncio.shield(self._import)
        self._import.result()

    async def _attempt(
        self, request: Request, route: Route, limiter: RateLimiter, state: _CallState, admit: Admit
    ) -> Reply:
        """Make one attempt within the provider's limits; raises AttemptFailed."""
        async with contextlib.AsyncExitStack() as held:
            with self._waits():
                slot = await held.enter_async_context(Slot(limiter, lambda: self._refuse(route.model, limiter)))
            await admit(state.failed_cost_usd or 0.0, slot.lend)
            state.attempts += 1
            state.begun = state.begun or time.time_ns()
            state.queue_ms += slot.queue_ms
            state.concurrency = limiter.in_flight
            state.timing = Timing()
            started = time.perf_counter()
            try:
                answered = await self._ask(request, route, limiter.limits.timeout_seconds, state.timing)
            except AttemptFailed as failure:
                limiter.failed(failure, state.attempts)
                if failure.kind in STOPS_MODEL:
                    self.stopped.setdefault(route.model, failure.message)
                raise
            finally:
                state.elapsed_ms = (time.perf_counter() - started) * 1000
            limiter.succeeded()
            return reply_of(answered, route, self._routes.keys)

    async def _ask(self, request: Request, route: Route, timeout_seconds: float, timing: Timing) -> ProviderAnswer:
        """Send a request and read its answer once. Raises AttemptFailed for every failure."""
        # A slow drip of bytes evades the read timeout of HTTP clients, so this limits the whole answer, too
        timeout = AnswerTimeout(timeout_seconds, request.stream)
        try:
            async with timeout.deadline:
                if model := self._direct.model(request, route):
                    return await self._direct.ask(model, request, route, timing, timeout.on_data)
                return await ask_litellm(request, route, self._transport, timing, timeout.on_data)
        except AttemptFailed:
            raise
        except TimeoutError as error:
            raise AttemptFailed("timeout", timeout.message) from error
        except Exception as error:  # LiteLLM may raise any exception
            raise classify_error(error) from error

    def _refuse(self, model: str, limiter: RateLimiter) -> None:
        """Raise AttemptFailed where the model is stopped or its provider is down, CallsEndedError after `end_calls`."""
        self._require_going_on()
        cause = self.stopped.get(model)
        if cause is not None:
            raise AttemptFailed("model_stopped", f"{model} is no longer called: {cause}")
        limiter.require_closed_circuit()

    def _pause_seconds(self, attempts: int, retry_after: float | None) -> float:
        """Compute the pause before the next attempt: the provider's, else exponential backoff; with jitter."""
        jitter = random.uniform(0, self._backoff_seconds)
        if retry_after is not None:
            return min(retry_after, LONGEST_RETRY_AFTER_SECONDS) + jitter
        return min(self._backoff_seconds * 2.0 ** (attempts - 1), LONGEST_BACKOFF_SECONDS) + jitter


async def _answer_here(baseline: Baseline, request: Request, admit: Admit) -> Outcome:
    """Answer by a baseline: a call without a provider's limits."""
    try:
        await admit(0.0, contextlib.nullcontext)
    except AttemptFailed as failure:
        return Failure(failure.kind, failure.message, 0)
    if isinstance(baseline, Function):
        return await baseline.answer(request)
    return await answer_by_baseline(baseline, request)
