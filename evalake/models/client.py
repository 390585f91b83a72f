"""Calls models: many at once, within their providers' limits, with retries; what fails is a Failure, not an exception.

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
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from evalake.core.configuration import Configuration
from evalake.core.errors import ProviderError
from evalake.models import litellm_internals as internals
from evalake.models.attempts import Caller, Outcome
from evalake.models.baselines import Baseline
from evalake.models.limits import Admit, always
from evalake.models.request import Request
from evalake.models.routes import NO_BASELINES, ReadSecret, Routes, no_secrets

if TYPE_CHECKING:
    from anyio.from_thread import BlockingPortal

CLOSED = "the client is closed and calls no more models"

T = TypeVar("T")
OnOutcome = Callable[[Request, int, Outcome], None]


@dataclass(slots=True)
class _Flight:
    """A call on its way, and how many wait for it."""

    task: asyncio.Task[Outcome]
    waiting: int = 0


class Client(AbstractContextManager["Client"]):
    """The one way to call models. Share one per process; safe to use from several threads at once."""

    def __init__(
        self,
        configuration: Configuration,
        backoff_seconds: float = 0.5,
        read_secret: ReadSecret = no_secrets,
        baselines: Mapping[str, Baseline] = NO_BASELINES,
    ):
        """Set up a client whose first pause before a retry is `backoff_seconds`; the pauses double, with jitter.

        `read_secret` is called for a key when the first call needs it, on a thread of its own.
        """
        self._configuration = configuration
        self._routes = Routes(configuration, read_secret, baselines)
        self._backoff_seconds = backoff_seconds
        self._guard = threading.Lock()  # nothing is handed to the loop after it was told to end
        self._portal: BlockingPortal | None = None
        self._portal_life = ExitStack()
        self._started: dict[Future[Any], threading.Event] = {}  # what runs on the loop, and whether it has ended
        self._closed = False
        self._ended: str | None = None  # why no further attempt begins
        # These belong to the loop's thread alone.
        self._loop: asyncio.AbstractEventLoop | None = None
        self._caller: Caller | None = None
        self._flights: dict[tuple[str, int], _Flight] = {}

    def check_model(self, model: str) -> None:
        """Check, without any call, that `model` can be called; raises ProviderError, which says what is missing."""
        self._routes.find(model)

    def answer(self, requests: Sequence[tuple[Request, int]], on_outcome: OnOutcome) -> None:
        """Make all calls, given with their replicate numbers, and return when the last has ended.

        `on_outcome` is called with each outcome as it comes, on the loop thread: it must be quick. What it raises
        cancels the remaining calls and is raised here. Raises ProviderError, before any call, for a model that cannot
        be called.
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
        """Make one call, from any event loop. Identical calls (prompt hash and replicate) under way are one call.

        `admit` is awaited before each attempt, once the provider has a slot for it.

        Raises ProviderError for a model that cannot be called, CallsEndedError after `end_calls`; everything
        else that goes wrong is a Failure.
        """
        if asyncio.get_running_loop() is not self._loop:
            future, _ = self._start(lambda: self.call(request, replicate, admit))
            return await asyncio.wrap_future(future)
        key = (request.prompt_hash, replicate)
        flight = self._flights.get(key)
        if flight is None:
            assert self._caller is not None
            flight = self._flights[key] = _Flight(asyncio.create_task(self._caller.complete(request, admit)))
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
        """Begin no further attempt: from now on `call` raises CallsEndedError. Attempts under way go on."""
        self._ended = reason
        if self._caller is not None:
            self._caller.end(reason)

    @property
    def in_flight(self) -> int:
        """How many calls have begun an attempt and not ended; whoever awaits one has its outcome as it ends."""
        return len(self._flights) - self._caller.waiting if self._caller is not None else 0

    def close(self) -> None:
        """Cancel the calls under way, close the connections and end the thread."""
        with self._guard:
            self._closed = True
            started = dict(self._started)
        for future, ended in started.items():
            future.cancel()
            ended.wait()
        self._portal_life.close()

    def __exit__(self, *_: object) -> None:
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
        future.add_done_callback(lambda done: self._started.pop(done, None))
        return future, ended

    def _running(self) -> "BlockingPortal":
        if self._portal is None:
            from anyio.from_thread import start_blocking_portal

            self._portal = self._portal_life.enter_context(start_blocking_portal(name="evalake-calls"))
            self._portal.call(self._settle_in)
            self._portal_life.callback(self._portal.call, self._wind_up)
        return self._portal

    async def _settle_in(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.set_default_executor(internals.DroppingExecutor())
        self._caller = Caller(self._configuration, self._routes, self._backoff_seconds)
        if self._ended is not None:
            self._caller.end(self._ended)

    async def _wind_up(self) -> None:
        flights = [flight.task for flight in self._flights.values()]
        for task in flights:
            task.cancel()
        await asyncio.gather(*flights, return_exceptions=True)
        if self._caller is not None:
            await self._caller.close()


async def _together(coroutines: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Run all at once; where one raises or all are cancelled, the others have ended when this returns or raises."""
    from anyio import CancelScope

    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        with CancelScope(shield=True):
            await asyncio.gather(*tasks, return_exceptions=True)
