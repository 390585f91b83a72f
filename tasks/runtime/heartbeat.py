"""Background threads: for the length of a block, and for the end of the parent process."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context


@contextmanager
def background_thread(work: Callable[[threading.Event], None], name: str) -> Iterator[None]:
    """Run `work` on a thread during the block. It gets an event that is set at the end, and is then waited for."""
    over = threading.Event()
    thread = threading.Thread(target=copy_context().run, args=(work, over), name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def exit_with_parent() -> None:
    """Exit with the parent process, even if it is killed, and leave Ctrl-C to it; for the processes of a pool."""

    def follow_parent() -> None:
        if parent := multiprocessing.parent_process():
            parent.join()
            os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=follow_parent, name="parent-watch", daemon=True).start()
