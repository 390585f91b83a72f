"""An event loop on a thread of its own, to which any thread hands coroutines and waits."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")


class LoopThread:
    """A running event loop. It ends with `stop`, or with the process."""

    def __init__(self, name: str):
        self.loop = asyncio.new_event_loop()
        self._guard = threading.Lock()  # nothing may be handed over behind the last coroutine: it would wait for ever
        self._stopping = False
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    def run(self, coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
        """Run all of them at once and return their results in order; the first exception cancels the others.

        An exception in the waiting thread (KeyboardInterrupt) cancels all; in either case none is left running.
        Raises CancelledError where the loop is stopped meanwhile or already.
        """
        if threading.current_thread() is self._thread:
            raise RuntimeError("the loop's own thread cannot wait for it")
        todo = list(coroutines)
        result: Future[list[T]] = Future()
        tasks: list[asyncio.Task[list[T]]] = []

        def start() -> None:
            tasks.append(self.loop.create_task(_together(todo)))
            tasks[0].add_done_callback(finish)

        def finish(task: asyncio.Task[list[T]]) -> None:
            _close(todo)
            error = None if task.cancelled() else task.exception()
            if task.cancelled():
                result.cancel()
                result.set_running_or_notify_cancel()  # only this ends a `wait` for it
            elif error is not None:
                result.set_exception(error)
            else:
                result.set_result(task.result())

        with self._guard:
            if self._stopping:
                _close(todo)
                result.cancel()
            else:
                self.loop.call_soon_threadsafe(start)
        try:
            return result.result()
        except BaseException:
            if not result.done():
                self.loop.call_soon_threadsafe(lambda: tasks[0].cancel())
                wait([result])
            raise

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> "Future[T]":
        """Start one coroutine; its future is cancelled where the loop is stopped meanwhile or already."""
        with self._guard:
            if not self._stopping:
                return asyncio.run_coroutine_threadsafe(coroutine, self.loop)
        coroutine.close()
        refused: Future[T] = Future()
        refused.cancel()
        return refused

    def stop(self, last: Coroutine[Any, Any, None]) -> None:
        """Cancel what runs, run `last`, and end the thread."""
        with self._guard:
            self._stopping = True
        asyncio.run_coroutine_threadsafe(_wind_up(last), self.loop).result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()

    def _serve(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.set_default_executor(_Executor())
        try:
            self.loop.run_forever()
        finally:
            self.loop.close()


async def _together(coroutines: list[Coroutine[Any, Any, T]]) -> list[T]:
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _close(coroutines: list[Coroutine[Any, Any, T]]) -> None:
    """Close those that were never started; for the others this does nothing."""
    for coroutine in coroutines:
        coroutine.close()


async def _wind_up(last: Coroutine[Any, Any, None]) -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await last
    loop = asyncio.get_running_loop()
    await loop.shutdown_asyncgens()
    await loop.shutdown_default_executor()


class _Executor(ThreadPoolExecutor):
    """The loop's helper threads. LiteLLM prepares each call on one, and gets the coroutine of the rest from there.

    Where the call is cancelled at that moment, nobody awaits this coroutine, and Python would warn of it.
    """

    def submit(self, function: Callable[P, T], /, *arguments: P.args, **named: P.kwargs) -> "Future[T]":
        """As ThreadPoolExecutor; a coroutine that `function` returns may be dropped."""

        def prepared(*arguments: P.args, **named: P.kwargs) -> Any:
            result = function(*arguments, **named)
            return _Droppable(result) if asyncio.iscoroutine(result) else result

        return super().submit(prepared, *arguments, **named)


class _Droppable(Coroutine[Any, Any, Any]):
    """A coroutine that closes itself when it is dropped before it was awaited."""

    def __init__(self, inner: Coroutine[Any, Any, Any]):
        self._inner = inner

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._inner.__await__()

    def send(self, value: Any) -> Any:
        return self._inner.send(value)

    def throw(self, *error: Any) -> Any:
        return self._inner.throw(*error)

    def close(self) -> None:
        self._inner.close()

    def __del__(self) -> None:
        self._inner.close()
