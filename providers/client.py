"""Calls models: many at once, each retried by one owner, within its provider's limits, and never with an exception.

All calls of a client run on one background event loop, so batches of several threads share limits and connections:

    with Client(read_configuration()) as client:
        client.answer([(request, 0) for request in requests], on_outcome)   # blocks until every call has ended

A conversation is a coroutine that awaits `client.call` as often as it needs; `client.run` walks many at once:

    async def walk(item):
        replies = []
        while request := next_request(item, replies):
            replies.append(await client.call(request, item.replicate))

    client.run(walk(item) for item in batch)
"""

import asyncio
import random
import threading
import time
from collections.abc import AsyncIterable, Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import AbstractContextManager, aclosing, nullcontext
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from core.configuration import Configuration
from core.errors import ProviderError
from core.redaction import KnownKeys
from providers import litellm_internals as internals
from providers.admission import Admit, always
from providers.baselines import Baseline, answer
from providers.direct import DirectCalls
from providers.direct import warm_up as warm_up_direct
from providers.failures import RETRIED, STOPS_MODEL, AttemptFailed, classify_error
from providers.litellm_setup import load, warm_up
from providers.prompt_cache import messages_of
from providers.rate_limiter import RateLimiter
from providers.replies import read_reply
from providers.request import Failure, Reply, Request
from providers.routes import CLIENT_OWNED, NO_BASELINES, ReadSecret, Route, find_route, no_secrets
from providers.streams import MOST_PIECES, STREAMED, Patience, Whole, tells_its_end
from providers.telemetry import record_call
from providers.transport import Timing

if TYPE_CHECKING:
    from anyio.from_thread import BlockingPortal

CLOSED = "the client is closed and calls no more models"

T = TypeVar("T")
Outcome = Reply | Failure
OnOutcome = Callable[[Request, int, Outcome], None]

LONGEST_BACKOFF_SECONDS = 30.0
LONGEST_RETRY_AFTER_SECONDS = 120.0  # a provider that wants a longer pause is asked again after this one


class CallsEndedError(ProviderError):
    """The client begins no further calls."""


@dataclass(slots=True)
class _Flight:
    """A call on its way, and how many wait for it."""

    task: asyncio.Task[Outcome]
    waiting: int = 0


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
        """The reply with what its call took."""
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
        """The failure that the call ends with."""
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


class Client:
    """The one way to call models. Share one per process; safe to use from several threads at once."""

    def __init__(
        self,
        configuration: Configuration,
        backoff_seconds: float = 0.5,
        read_secret: ReadSecret = no_secrets,
        baselines: Mapping[str, Baseline] = NO_BASELINES,
    ):
        """`backoff_seconds` is the first pause before a retry; the pauses double, with jitter.

        `read_secret` is asked for a key when the first call needs it, on a thread of its own.
        """
        self._configuration = configuration
        self._read_secret = read_secret
        self._baselines = baselines
        self._backoff_seconds = backoff_seconds
        self._guard = threading.Lock()  # nothing is handed to the loop after it was told to end
        self._portal: BlockingPortal | None = None
        self._portal_life: AbstractContextManager[BlockingPortal] | None = None
        self._started: dict[Future[Any], threading.Event] = {}  # what runs on the loop, and whether it has ended
        self._closed = False
        self._routes: dict[str, Route] = {}
        self._finding_route = threading.Lock()  # many first calls at once read a secret once
        self._keys = KnownKeys()
        # These belong to the loop's thread alone.
        self._loop: asyncio.AbstractEventLoop | None = None
        self._limiters: dict[str, RateLimiter] = {}
        self._flights: dict[tuple[str, int], _Flight] = {}
        self._stopped: dict[str, str] = {}
        self._direct: DirectCalls | None = None
        self._import: asyncio.Task[None] | None = None  # of LiteLLM, which baselines do without
        self._warm_up: asyncio.Task[None] | None = None
        self._ended: str | None = None  # why no further attempt begins

    def check_model(self, model: str) -> None:
        """Find out, without any call, whether `model` can be called: ProviderError says what is missing."""
        self._route(model)

    def answer(self, requests: Sequence[tuple[Request, int]], on_outcome: OnOutcome) -> None:
        """Make all calls, given with their replicate numbers, and return when the last has ended.

        `on_outcome` is told each outcome as it comes, on the loop thread: it must be quick. What it raises cancels the
        remaining calls and is raised here. Raises ProviderError, before any call, for a model that cannot be called.
        """
        for model in {request.model for request, _ in requests}:
            self.check_model(model)

        async def ask(request: Request, replicate: int) -> None:
            on_outcome(request, replicate, await self.call(request, replicate))

        self.run(ask(request, replicate) for request, replicate in requests)

    def run(self, coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
        """Run coroutines that await `call`, all at once, on the client's loop; return their results in order.

        The first exception of one cancels the others and is raised; so does a KeyboardInterrupt of this thread. None is
        left running.
        """
        together = list(coroutines)
        if not together:
            if self._closed:
                raise ProviderError(CLOSED)
            return []
        try:
            future, ended = self._start(lambda: _together(together))
        except BaseException:
            for coroutine in together:
                coroutine.close()
            raise
        try:
            return future.result()
        except CancelledError as error:
            ended.wait()
            raise ProviderError("the client was closed while calls were on their way") from error
        except BaseException:
            if not future.done():
                future.cancel()
                ended.wait()
            raise

    async def call(self, request: Request, replicate: int = 0, admit: Admit = always) -> Outcome:
        """One call, from any event loop. Identical ones (prompt hash and replicate) on their way are one call.

        `admit` is asked before each attempt, once the provider has a slot for it.

        Raises ProviderError for a model that cannot be called, CallsEndedError once `end_calls` was told; everything
        else that goes wrong is a Failure.
        """
        if asyncio.get_running_loop() is not self._loop:
            future, _ = self._start(lambda: self.call(request, replicate, admit))
            return await asyncio.wrap_future(future)
        key = (request.prompt_hash, replicate)
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = _Flight(asyncio.create_task(self._complete(request, admit)))
        flight.waiting += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            if flight.waiting == 0:
                flight.task.cancel()  # where it has ended, this does nothing
                if self._flights.get(key) is flight:
                    del self._flights[key]

    def end_calls(self, reason: str) -> None:
        """Begin no further attempt: from now on `call` raises CallsEndedError. What is on its way goes on."""
        self._ended = reason

    def close(self) -> None:
        """Cancel what is on its way, close the connections and end the thread."""
        with self._guard:
            portal, self._portal, self._closed = self._portal, None, True
            started = dict(self._started)
        for future, ended in started.items():
            future.cancel()
            ended.wait()
        if portal is not None and self._portal_life is not None:
            portal.call(self._wind_up)
            self._portal_life.__exit__(None, None, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _start(self, make: Callable[[], Coroutine[Any, Any, T]]) -> tuple[Future[T], threading.Event]:
        """Start a coroutine on the loop; the event is set when it has ended, cancelled or not."""
        ended = threading.Event()

        async def tell() -> T:
            try:
                return await make()
            finally:
                ended.set()

        with self._guard:
            if self._closed:
                raise ProviderError(CLOSED)
            future = self._running().start_task_soon(tell)
            self._started[future] = ended
        future.add_done_callback(self._forget)
        return future, ended

    def _forget(self, future: Future[Any]) -> None:
        self._started.pop(future, None)

    def _running(self) -> "BlockingPortal":
        if self._portal is None:
            from anyio.from_thread import start_blocking_portal

            self._portal_life = start_blocking_portal(name="evalake-calls")
            self._portal = self._portal_life.__enter__()
            self._portal.call(self._settle_in)
        return self._portal

    async def _settle_in(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.set_default_executor(internals.DroppingExecutor())
        self._direct = DirectCalls()

    async def _wind_up(self) -> None:
        flights = [flight.task for flight in self._flights.values()]
        for task in flights:
            task.cancel()
        await asyncio.gather(*flights, return_exceptions=True)
        if self._direct is not None:
            await self._direct.close()
        if self._import is not None:
            await internals.close_connections()

    def _route(self, model: str) -> Route:
        with self._finding_route:
            if model not in self._routes:
                self._routes[model] = find_route(model, self._configuration, self._read_secret, self._baselines)
                self._keys = KnownKeys()  # with the key of this route
            return self._routes[model]

    def _limiter(self, provider: str) -> RateLimiter:
        limiter = self._limiters.get(provider)
        if limiter is None:
            limiter = self._limiters[provider] = RateLimiter(provider, self._configuration.limits(provider))
        return limiter

    async def _complete(self, request: Request, admit: Admit) -> Outcome:
        """Attempts until one gives a reply, or none will."""
        # The first time, a secret may have to be fetched, which would hold up the loop.
        route = self._routes.get(request.model)
        if route is None:
            route = await asyncio.to_thread(self._route, request.model)
        if route.baseline is not None:
            return await _answer_here(route.baseline, request, admit)
        _refuse_owned(request)
        await self._import_litellm()
        limiter = self._limiter(route.provider)
        course = _Course()
        while True:
            try:
                outcome: Outcome = course.answered(await self._attempt(request, route, limiter, course, admit))
                break
            except AttemptFailed as failure:
                course.pay(failure)
                if failure.kind not in RETRIED or course.attempts >= limiter.limits.attempts:
                    outcome = course.given_up(failure)
                    break
                pause = self._pause_seconds(course.attempts, failure.retry_after)
            await asyncio.sleep(pause)
            course.waited_ms += pause * 1000
        record_call(request, route, outcome, course.begun)
        return outcome

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
        """One attempt, within the provider's limits; raises AttemptFailed."""
        async with limiter.acquire(lambda: self._refuse(route.model, limiter)) as slot:
            await admit(course.failed_cost_usd or 0.0, slot.lend)
            course.attempts += 1
            course.begun = course.begun or time.time_ns()
            course.queue_ms += slot.queue_ms
            course.concurrency = limiter.in_flight
            course.timing = Timing()
            started = time.perf_counter()
            try:
                response = await self._ask(request, route, limiter.limits.timeout_seconds, course.timing)
                reply = read_reply(response, route, self._keys)
            except AttemptFailed as failure:
                limiter.failed(failure, course.attempts)
                if failure.kind in STOPS_MODEL:
                    self._stopped.setdefault(route.model, failure.message)
                raise
            finally:
                course.elapsed_ms = (time.perf_counter() - started) * 1000
            limiter.succeeded()
            return reply

    async def _ask(self, request: Request, route: Route, timeout_seconds: float, timing: Timing) -> Any:
        """A LiteLLM response, without retries. Raises AttemptFailed for every way it can go wrong."""
        assert self._direct is not None
        # A timeout of reading, as HTTP clients have, is evaded by a slow drip of bytes; these are of the whole, too.
        patience = Patience(timeout_seconds, request.stream)
        try:
            async with patience.deadline:
                if model := self._direct.model(request, route):
                    return await self._direct.ask(model, request, timing, patience.heard)
                return await self._ask_litellm(request, route, timeout_seconds, timing, patience.heard)
        except TimeoutError as error:
            raise AttemptFailed("timeout", patience.exhausted) from error
        except Exception as error:  # LiteLLM may raise anything for what a provider sends; all becomes a kind
            raise classify_error(error) from error

    async def _ask_litellm(
        self, request: Request, route: Route, timeout_seconds: float, timing: Timing, heard: Callable[[], None]
    ) -> Any:
        """One `litellm.acompletion`; of its time beginning and end are known, and of a stream its first piece."""
        if self._warm_up is None:
            self._warm_up = asyncio.create_task(warm_up())
        await asyncio.shield(self._warm_up)
        internals.spare_bookkeeping()
        stream = request.stream and tells_its_end(route.model)
        timing.sent = time.perf_counter()
        response = await load().acompletion(
            model=route.model,
            messages=messages_of(request, route.provider),
            timeout=timeout_seconds,
            num_retries=0,
            max_retries=0,
            **route.arguments,
            **{**({"stream": True, **STREAMED} if stream else {}), **request.parameters},
        )
        if isinstance(response, AsyncIterable):
            response = await _read_pieces(response, timing, heard)
        timing.ended = time.perf_counter()
        return response

    def _refuse(self, model: str, limiter: RateLimiter) -> None:
        """Raise AttemptFailed where the model was stopped or its provider counts as down, CallsEndedError after all."""
        if self._ended is not None:
            raise CallsEndedError(self._ended)
        cause = self._stopped.get(model)
        if cause is not None:
            raise AttemptFailed("model_stopped", f"{model} is not called any more: {cause}")
        limiter.refuse_if_open()

    def _pause_seconds(self, attempts: int, retry_after: float | None) -> float:
        """The pause before the next attempt: what the provider asked for, or exponential backoff; with jitter."""
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


async def _read_pieces(stream: Any, timing: Timing, heard: Callable[[], None]) -> Any:
    """The `litellm.ModelResponse` of a `litellm.CustomStreamWrapper`.

    What that hands out ends in "stop", whether or not the provider's answer did; what it keeps does not.
    """
    async with aclosing(stream):
        async for _ in stream:
            timing.first_byte = timing.first_byte or time.perf_counter()
            heard()
            if len(stream.chunks) > MOST_PIECES:
                break
    whole = Whole()
    for piece in stream.chunks:
        whole.add(piece)
    response = whole.response()
    response.model = None  # it puts the name that was asked for there
    return response


def _refuse_owned(request: Request) -> None:
    owned = sorted(CLIENT_OWNED & request.parameters.keys())
    if owned:
        raise ProviderError(f"a request to {request.model} cannot set {', '.join(owned)}, which is the client's part")


async def _together(coroutines: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """All at once; where one raises or all are cancelled, the others have ended when this does."""
    from anyio import CancelScope

    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        with CancelScope(shield=True):
            await asyncio.gather(*tasks, return_exceptions=True)
