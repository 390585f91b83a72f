"""An event loop on a thread of its own, to which any thread hands coroutines and waits."""

import asyncio
import threading
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    """A running event loop. It ends with `stop`, or with the process."""

    def __init__(self, name: str):
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    def run(self, coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
        """Run all of them at once and return their results in order; the first exception cancels the others.

        An exception in the waiting thread (KeyboardInterrupt) cancels all; in either case none is left running.
        """
        todo = list(coroutines)
        if threading.current_thread() is self._thread or self.loop.is_closed():
            for coroutine in todo:
                coroutine.close()
            raise RuntimeError("cannot wait for calls here: the client is closed, or this is its own thread")
        ended = threading.Event()
        future = asyncio.run_coroutine_threadsafe(_together(todo, ended), self.loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            ended.wait()
            raise

    def stop(self, last: Coroutine[Any, Any, None]) -> None:
        """Cancel what runs, run `last`, and end the thread."""
        if self.loop.is_closed():
            last.close()
            return
        asyncio.run_coroutine_threadsafe(_wind_up(last), self.loop).result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()

    def _serve(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            self.loop.close()


async def _together(coroutines: list[Coroutine[Any, Any, T]], ended: threading.Event) -> list[T]:
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        ended.set()


async def _wind_up(last: Coroutine[Any, Any, None]) -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await last
    loop = asyncio.get_running_loop()
    await loop.shutdown_asyncgens()
    await loop.shutdown_default_executor()
