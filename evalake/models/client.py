"""Calls models: many at once, within their providers' limits, with retries. A failed call is a Failure.

All calls of a client run on one background event loop, so that batches of several threads share limits and connections:

    with Client(read_configuration()) as client:
        outcomes = client.run([client.call(request) for request in requests])   # blocks until every call has ended

A conversation is a coroutine that awaits `client.call`, too:

    async def converse(item):
        replies = []
        while request := next_request(item, replies):
            replies.append(await client.call(request, item.replicate))

    client.run(converse(item) for item in batch)
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
from evalake.models.attempts import Admit, Breakers, Caller, CallsEndedError, Outcome, always
from evalake.models.request import Baseline, Request
from evalake.models.routes import NO_BASELINES, ReadSecret, Routes, no_secrets

if TYPE_CHECKING:
    from anyio.from_thread import BlockingPortal

CLOSED = "the client is closed"

T = TypeVar("T")


@dataclass(slots=True)
class _RunningCall:
    """A running call, and the number of callers that wait for it."""

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
        breakers: Breakers | None = None,
    ):
        """Set up a client. The pause before a retry begins with `backoff_seconds` and doubles, with jitter.

        `read_secret` is called on another thread when the first call needs its key. `breakers` are shared with other
        clients; None: the client's own.
        """
        self._configuration = configuration
        self._routes = Routes(configuration, read_secret, baselines)
        self._backoff_seconds = backoff_seconds
        self._breakers = {} if breakers is None else breakers
        self._lock = threading.Lock()  # so that nothing starts on the loop after it has ended
        self._portal: BlockingPortal | None = None
        self._portal_exit = ExitStack()
        self._started: dict[Future[Any], threading.Event] = {}  # coroutines on the loop, and whether they have ended
        self._closed = False
        self._ended: str | None = None  # the reason for which no further attempt begins
        # Used by the loop's thread alone
        self._loop: asyncio.AbstractEventLoop | None = None
        self._caller: Caller | None = None
        self._running: dict[tuple[str, int], _RunningCall] = {}

    def run(self, coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
        """Run coroutines that await `call` all at once on the client's loop; return their results in order.

        The first exception, or a KeyboardInterrupt of this thread, cancels the other coroutines and is raised after
        they have ended.
        """
        all_ = list(coroutines)
        if not all_:
            if self._closed:
                raise ProviderError(CLOSED)
            return []
        try:
            future, ended = self._start(lambda: _gather(all_))
        except BaseException:
            for coroutine in all_:
                coroutine.close()
            raise
        try:
            return future.result()
        except CancelledError as error:
            ended.wait()
            raise ProviderError("the client was closed during its calls") from error
        except BaseException:
            if not future.done():
                future.cancel()
                ended.wait()
            raise

    async def call(self, request: Request, replicate: int = 0, admit: Admit = always) -> Outcome:
        """Make one call, from any event loop. Concurrent calls of one prompt hash and replicate are one call.

        `admit` is awaited before each attempt, once the provider has a free slot. Raises ProviderError for a model that
        cannot be called, CallsEndedError after `end_calls`; any other failure is a Failure.
        """
        if asyncio.get_running_loop() is not self._loop:
            future, _ = self._start(lambda: self.call(request, replicate, admit))
            return await asyncio.wrap_future(future)
        key = (request.prompt_hash, replicate)
        running = self._running.get(key)
        if running is None:
            assert self._caller is not None
            running = self._running[key] = _RunningCall(asyncio.create_task(self._caller.complete(request, admit)))
        running.waiting += 1
        try:
            return await asyncio.shield(running.task)
        finally:
            running.waiting -= 1
            if running.waiting == 0:
                running.task.cancel()
                if self._running.get(key) is running:
                    del self._running[key]

    def end_calls(self, reason: str) -> None:
        """Begin no further attempt: `call` raises CallsEndedError. Running attempts go on."""
        self._ended = reason

    def require_going_on(self) -> None:
        """Raise CallsEndedError after `end_calls`."""
        if self._ended is not None:
            raise CallsEndedError(self._ended)

    @property
    def in_flight(self) -> int:
        """The number of calls with a running attempt."""
        return len(self._running) - self._caller.waiting if self._caller is not None else 0

    def close(self) -> None:
        """Cancel the running calls, close the connections and end the thread."""
        with self._lock:
            self._closed = True
            started = dict(self._started)
        for future, ended in started.items():
            future.cancel()
            ended.wait()
        self._portal_exit.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self, make: Callable[[], Coroutine[Any, Any, T]]) -> tuple[Future[T], threading.Event]:
        """Start a coroutine on the loop; the event is set when it has ended, cancelled or not."""
        ended = threading.Event()

        async def run() -> T:
            try:
                return await make()
            finally:
                ended.set()

        with self._lock:
            if self._closed:
                raise ProviderError(CLOSED)
            future = self._open_portal().start_task_soon(run)
            self._started[future] = ended
        future.add_done_callback(lambda done: self._started.pop(done, None))
        return future, ended

    def _open_portal(self) -> "BlockingPortal":
        if self._portal is None:
            from anyio.from_thread import start_blocking_portal

            self._portal = self._portal_exit.enter_context(start_blocking_portal(name="evalake-calls"))
            self._portal.call(self._set_up_loop)
            self._portal_exit.callback(self._portal.call, self._tear_down_loop)
        return self._portal

    async def _set_up_loop(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._caller = Caller(
            self._configuration, self._routes, self._backoff_seconds, self._breakers, self.require_going_on
        )

    async def _tear_down_loop(self) -> None:
        tasks = [running.task for running in self._running.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._caller is not None:
            await self._caller.close()


async def _gather(coroutines: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Run all at once; all have ended when this returns or raises."""
    from anyio import CancelScope

    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        with CancelScope(shield=True):
            await asyncio.gather(*tasks, return_exceptions=True)
