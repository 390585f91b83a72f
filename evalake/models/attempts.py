"""Makes a call: attempts, each within its provider's limits, until one gives a reply or no other may follow.

All retries are made here: nothing below tries anything twice.
"""

import asyncio
import random
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace

from evalake.core.configuration import Configuration
from evalake.core.errors import ProviderError
from evalake.models import litellm_internals as internals
from evalake.models.baselines import Baseline, answer
from evalake.models.direct import DirectCalls
from evalake.models.direct import warm_up as warm_up_direct
from evalake.models.failures import RETRIED, STOPS_MODEL, AttemptFailed, classify_error
from evalake.models.limits import Admit, RateLimiter
from evalake.models.litellm_calls import LiteLLMCalls
from evalake.models.replies import ProviderAnswer, reply_of
from evalake.models.request import Failure, Reply, Request
from evalake.models.routes import CLIENT_OWNED, Route, Routes
from evalake.models.streams import Patience
from evalake.models.telemetry import record_call
from evalake.models.transport import Timing

Outcome = Reply | Failure

LONGEST_BACKOFF_SECONDS = 30.0
LONGEST_RETRY_AFTER_SECONDS = 120.0  # a provider that wants a longer pause is asked again after this one


class CallsEndedError(ProviderError):
    """The client begins no further calls."""


@dataclass(slots=True)
class _Course:
    """How a call has gone so far."""

    attempts: int = 0
    begun: int = 0  # nanoseconds since 1970; 0 before the first attempt
    queue_ms: float = 0.0
    waited_ms: float = 0.0
    concurrency: int | None = None
    failed_cost_usd: float | None = None
    elapsed_ms: float | None = None  # of the last attempt, whatever came of it
    timing: Timing = field(default_factory=Timing)

    def pay(self, failure: AttemptFailed) -> None:
        """Add what a failed attempt cost, where that is known."""
        if failure.cost_usd is not None:
            self.failed_cost_usd = (self.failed_cost_usd or 0.0) + failure.cost_usd

    def answered(self, reply: Reply) -> Reply:
        """Add to the reply what its call took."""
        return replace(
            reply,
            attempts=self.attempts,
            latency_ms=self.timing.latency_ms,
            queue_ms=self.queue_ms,
            waited_ms=self.waited_ms,
            connect_ms=self.timing.connect_ms,
            first_byte_ms=self.timing.first_byte_ms,
            concurrency=self.concurrency,
            failed_cost_usd=self.failed_cost_usd,
        )

    def given_up(self, failure: AttemptFailed) -> Failure:
        """Build the failure that the call ends with."""
        return Failure(
            failure.kind,
            failure.message,
            self.attempts,
            latency_ms=self.elapsed_ms,
            queue_ms=self.queue_ms,
            waited_ms=self.waited_ms,
            concurrency=self.concurrency,
            failed_cost_usd=self.failed_cost_usd,
        )


class Caller:
    """Makes the calls of one client. Made and used on one event loop, but for `end`."""

    def __init__(self, configuration: Configuration, routes: Routes, backoff_seconds: float) -> None:
        self._configuration = configuration
        self._routes = routes
        self._backoff_seconds = backoff_seconds
        self._limiters: dict[str, RateLimiter] = {}
        self._direct = DirectCalls()
        self._litellm = LiteLLMCalls()
        self._import: asyncio.Task[None] | None = None  # of LiteLLM, which baselines do without
        self._ended: str | None = None  # why no further attempt begins
        self.waiting = 0
        """Calls that wait for their provider's limits, or for the next attempt."""
        self.stopped: dict[str, str] = {}
        """Why a model is not asked any more."""

    async def complete(self, request: Request, admit: Admit) -> Outcome:
        """Attempt the request until an attempt gives a reply or no other may follow."""
        # The first time, a secret may have to be fetched, which would hold up the loop.
        route = self._routes.found.get(request.model)
        if route is None:
            route = await asyncio.to_thread(self._routes.find, request.model)
        if route.baseline is not None:
            return await _answer_here(route.baseline, request, admit)
        if owned := sorted(CLIENT_OWNED & request.parameters.keys()):
            names = ", ".join(owned)
            raise ProviderError(f"a request to {request.model} cannot set {names}, which is the client's part")
        await self._import_litellm()
        limiter = self._limiter(route.provider)
        course = _Course()
        while True:
            try:
                outcome: Outcome = course.answered(await self._attempt(request, route, limiter, course, admit))
                break
            except AttemptFailed as failure:
                course.pay(failure)
                if failure.kind == "content_policy":  # the model's own answer, as the finish reason is
                    # Nobody bills an answer whose status is an error.
                    outcome = course.answered(Reply(None, finish_reason="content_filter", cost_usd=0.0))
                    break
                if failure.kind not in RETRIED or course.attempts >= limiter.limits.attempts:
                    outcome = course.given_up(failure)
                    break
                pause = self._pause_seconds(course.attempts, failure.retry_after)
            with self._waits():
                await asyncio.sleep(pause)
            course.waited_ms += pause * 1000
        record_call(request, route, outcome, course.begun)
        return outcome

    def end(self, reason: str) -> None:
        """Begin no further attempt: from now on each raises CallsEndedError. Those under way go on."""
        self._ended = reason

    async def close(self) -> None:
        """Close all connections."""
        await self._direct.close()
        if self._import is not None:
            await internals.close_connections()

    @contextmanager
    def _waits(self) -> Iterator[None]:
        self.waiting += 1
        try:
            yield
        finally:
            self.waiting -= 1

    def _limiter(self, provider: str) -> RateLimiter:
        limiter = self._limiters.get(provider)
        if limiter is None:
            limits = self._configuration.limits(provider)
            limiter = self._limiters[provider] = RateLimiter(provider, limits)
        return limiter

    async def _import_litellm(self) -> None:
        """Import LiteLLM once, on a thread: it takes seconds."""
        if self._import is None:
            self._import = asyncio.create_task(asyncio.to_thread(warm_up_direct))
        if not self._import.done():
            await asyncio.shield(self._import)
        self._import.result()

    async def _attempt(
        self, request: Request, route: Route, limiter: RateLimiter, course: _Course, admit: Admit
    ) -> Reply:
        """Make one attempt, within the provider's limits; raises AttemptFailed."""
        async with AsyncExitStack() as held:
            with self._waits():
                slot = await held.enter_async_context(limiter.acquire(lambda: self._refuse(route.model, limiter)))
            await admit(course.failed_cost_usd or 0.0, slot.lend)
            course.attempts += 1
            course.begun = course.begun or time.time_ns()
            course.queue_ms += slot.queue_ms
            course.concurrency = limiter.in_flight
            course.timing = Timing()
            started = time.perf_counter()
            try:
                answered = await self._ask(request, route, limiter.limits.timeout_seconds, course.timing)
            except AttemptFailed as failure:
                limiter.failed(failure, course.attempts)
                if failure.kind in STOPS_MODEL:
                    self.stopped.setdefault(route.model, failure.message)
                raise
            finally:
                course.elapsed_ms = (time.perf_counter() - started) * 1000
            limiter.succeeded()
            return reply_of(answered, route, self._routes.keys)

    async def _ask(self, request: Request, route: Route, timeout_seconds: float, timing: Timing) -> ProviderAnswer:
        """Send a request and read its answer, without retries. Raises AttemptFailed for every way it can go wrong."""
        # A timeout of reading, as HTTP clients have, is evaded by a slow drip of bytes; these limit the whole, too.
        patience = Patience(timeout_seconds, request.stream)
        try:
            async with patience.deadline:
                if model := self._direct.model(request, route):
                    return await self._direct.ask(model, request, timing, patience.heard)
                return await self._litellm.ask(request, route, timeout_seconds, timing, patience.heard)
        except AttemptFailed:
            raise
        except TimeoutError as error:
            raise AttemptFailed("timeout", patience.exhausted) from error
        except Exception as error:  # LiteLLM may raise anything for what a provider sends; all becomes a kind
            raise classify_error(error) from error

    def _refuse(self, model: str, limiter: RateLimiter) -> None:
        """Raise AttemptFailed where the model was stopped or its provider is down, CallsEndedError after `end`."""
        if self._ended is not None:
            raise CallsEndedError(self._ended)
        cause = self.stopped.get(model)
        if cause is not None:
            raise AttemptFailed("model_stopped", f"{model} is not called any more: {cause}")
        limiter.refuse_if_open()

    def _pause_seconds(self, attempts: int, retry_after: float | None) -> float:
        """Compute the pause before the next attempt: as the provider asked, or exponential backoff; with jitter."""
        jitter = random.uniform(0, self._backoff_seconds)
        if retry_after is not None:
            return min(retry_after, LONGEST_RETRY_AFTER_SECONDS) + jitter
        return min(self._backoff_seconds * 2.0 ** (attempts - 1), LONGEST_BACKOFF_SECONDS) + jitter


async def _answer_here(baseline: Baseline, request: Request, admit: Admit) -> Outcome:
    """Answer by a baseline, which counts as a call and never waits for a provider's limits."""
    try:
        await admit(0.0, nullcontext)
    except AttemptFailed as failure:
        return Failure(failure.kind, failure.message, 0)
    return await answer(baseline, request)
