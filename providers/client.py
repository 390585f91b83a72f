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
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeVar

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception,
    stop_after_attempt,
    wait_exponential,
    wait_random,
)

from contracts.configuration import Configuration
from contracts.errors import ProviderError
from providers.failures import RETRIED, STOPS_MODEL, AttemptFailed, understand
from providers.lane import Lane
from providers.litellm_setup import load, skip_bookkeeping, warm_up
from providers.loop import LoopThread
from providers.replies import read_reply
from providers.request import Failure, Reply, Request
from providers.routes import CLIENT_OWNED, ReadSecret, Route, find_route, no_secrets
from providers.telemetry import record_call

T = TypeVar("T")
Outcome = Reply | Failure
OnOutcome = Callable[[Request, int, Outcome], None]

LONGEST_BACKOFF_SECONDS = 30.0
LONGEST_RETRY_AFTER_SECONDS = 120.0  # a provider that wants a longer pause is asked again after this one


@dataclass(slots=True)
class _Flight:
    """A call on its way, and how many wait for it."""

    task: asyncio.Task[Outcome]
    waiting: int = 0


class Client:
    """The one way to call models. Share one per process; safe to use from several threads at once."""

    def __init__(
        self, configuration: Configuration, backoff_seconds: float = 0.5, read_secret: ReadSecret = no_secrets
    ):
        """`backoff_seconds` is the first pause before a retry; the pauses double, with jitter.

        `read_secret` is asked for a key when the first call needs it, on a thread of its own.
        """
        self._configuration = configuration
        self._read_secret = read_secret
        self._jitter = wait_random(0, backoff_seconds)
        self._backoff = wait_exponential(multiplier=backoff_seconds, max=LONGEST_BACKOFF_SECONDS) + self._jitter
        self._guard = threading.Lock()
        self._thread: LoopThread | None = None
        self._closed = False
        self._routes: dict[str, Route] = {}
        self._finding_route = threading.Lock()  # many first calls at once read a secret once
        # These three belong to the loop thread alone.
        self._lanes: dict[str, Lane] = {}
        self._flights: dict[tuple[str, int], _Flight] = {}
        self._stopped: dict[str, str] = {}

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

        The first exception of one cancels the others and is raised; so does a KeyboardInterrupt of this thread.
        """
        try:
            return self._running().run(coroutines)
        except CancelledError as error:
            raise ProviderError("the client was closed while calls were on their way") from error

    async def call(self, request: Request, replicate: int = 0) -> Outcome:
        """One call, from any event loop. Identical ones (prompt hash and replicate) on their way are one call.

        Raises ProviderError for a model that cannot be called; everything else that goes wrong is a Failure.
        """
        thread = self._running()
        if asyncio.get_running_loop() is not thread.loop:
            return await asyncio.wrap_future(thread.submit(self.call(request, replicate)))
        key = (request.prompt_hash, replicate)
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = _Flight(asyncio.create_task(self._complete(request)))
        flight.waiting += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            if flight.waiting == 0:
                flight.task.cancel()  # where it has ended, this does nothing
                if self._flights.get(key) is flight:
                    del self._flights[key]

    def close(self) -> None:
        """Cancel what is on its way, close the connections and end the thread."""
        with self._guard:
            thread, self._thread, self._closed = self._thread, None, True
        if thread is not None:
            thread.stop(_close_connections())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _running(self) -> LoopThread:
        with self._guard:
            if self._closed:
                raise ProviderError("the client is closed and calls no more models")
            if self._thread is None:
                load()  # here rather than on the loop, which it would block for seconds
                thread = LoopThread("evalake-calls")
                thread.run([warm_up()])
                self._thread = thread
            return self._thread

    def _route(self, model: str) -> Route:
        with self._finding_route:
            if model not in self._routes:
                self._routes[model] = find_route(model, self._configuration, self._read_secret)
            return self._routes[model]

    def _lane(self, provider: str) -> Lane:
        lane = self._lanes.get(provider)
        if lane is None:
            lane = self._lanes[provider] = Lane(provider, self._configuration.limits(provider))
        return lane

    async def _complete(self, request: Request) -> Outcome:
        """Attempts until one gives a reply, or none will."""
        # The first time, a secret may have to be fetched, which would hold up the loop.
        route = self._routes.get(request.model)
        if route is None:
            route = await asyncio.to_thread(self._route, request.model)
        _refuse_owned(request)
        lane = self._lane(route.provider)
        skip_bookkeeping()
        attempts, begun = 0, 0
        latency_ms: float | None = None  # of the last attempt, whatever came of it

        async def attempt() -> Reply:
            nonlocal attempts, begun, latency_ms
            async with lane.slots:
                await lane.turn(lambda: self._refuse(route.model, lane))
                attempts += 1
                begun = begun or time.time_ns()
                started = time.perf_counter()
                try:
                    return await self._attempt(request, route, lane, attempts)
                finally:
                    latency_ms = (time.perf_counter() - started) * 1000

        retrying = AsyncRetrying(
            stop=stop_after_attempt(lane.limits.attempts),
            wait=self._pause,
            retry=retry_if_exception(lambda error: isinstance(error, AttemptFailed) and error.kind in RETRIED),
            reraise=True,
        )
        outcome: Outcome
        try:
            outcome = await retrying(attempt)
        except AttemptFailed as failure:
            outcome = Failure(failure.kind, failure.message, attempts, latency_ms)
        record_call(request, route, outcome, begun)
        return outcome

    async def _attempt(self, request: Request, route: Route, lane: Lane, number: int) -> Reply:
        started = time.perf_counter()
        try:
            response = await _ask(request, route, lane.limits.timeout_seconds)
            reply = read_reply(response, route, number, (time.perf_counter() - started) * 1000)
        except AttemptFailed as failure:
            lane.failed(failure, number)
            if failure.kind in STOPS_MODEL:
                self._stopped.setdefault(route.model, failure.message)
            raise
        lane.succeeded()
        return reply

    def _refuse(self, model: str, lane: Lane) -> None:
        """Raise AttemptFailed where the model was stopped or the provider counts as down."""
        cause = self._stopped.get(model)
        if cause is not None:
            raise AttemptFailed("model_stopped", f"{model} is not called any more: {cause}")
        lane.refuse_if_open()

    def _pause(self, state: RetryCallState) -> float:
        """Seconds before the next attempt: what the provider asked for, or exponential backoff; with jitter."""
        error = state.outcome.exception() if state.outcome else None
        asked = error.retry_after if isinstance(error, AttemptFailed) else None
        if asked is None:
            return self._backoff(state)
        return min(asked, LONGEST_RETRY_AFTER_SECONDS) + self._jitter(state)


def _refuse_owned(request: Request) -> None:
    owned = sorted(CLIENT_OWNED & request.parameters.keys())
    if owned:
        raise ProviderError(f"a request to {request.model} cannot set {', '.join(owned)}, which is the client's part")


async def _ask(request: Request, route: Route, timeout_seconds: float) -> Any:
    """One LiteLLM completion, no retries. Raises AttemptFailed for every way it can go wrong."""
    try:
        # LiteLLM's timeout is one of reading, which a slow drip of bytes evades; ours is one of the whole attempt.
        async with asyncio.timeout(timeout_seconds):
            return await load().acompletion(
                model=route.model,
                messages=[dict(message) for message in request.messages],
                timeout=timeout_seconds,
                num_retries=0,
                max_retries=0,
                **route.arguments,
                **request.parameters,
            )
    except TimeoutError as error:
        raise AttemptFailed("timeout", f"no whole reply within {timeout_seconds:g} seconds") from error
    except Exception as error:  # LiteLLM may raise anything for what a provider sends; all becomes a kind
        raise understand(error) from error


async def _close_connections() -> None:
    """Close and forget the HTTP clients that LiteLLM keeps for this loop."""
    loop_mark = f"-{id(asyncio.get_running_loop())}"
    cache = load().in_memory_llm_clients_cache
    for key in [key for key in cache.cache_dict if key.endswith(loop_mark)]:
        holder = cache.cache_dict.pop(key)
        cache.ttl_dict.pop(key, None)
        for close in (getattr(holder, "close", None), getattr(getattr(holder, "client", None), "aclose", None)):
            if close is not None and asyncio.iscoroutinefunction(close):
                await close()
