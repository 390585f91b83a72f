"""Work on a thread of its own: beside a block of code, in the same context, or once the parent process has ended."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context


@contextmanager
def beside(work: Callable[[threading.Event], None], name: str) -> Iterator[None]:
    """Run `work` while the block runs; it is to end soon after the event that it is given is set, and is waited for."""
    over = threading.Event()
    thread = threading.Thread(target=copy_context().run, args=(work, over), name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def end_with_parent() -> None:
    """Have this process end when the one that started it does, however that ends, and leave Ctrl-C to it.

    A pool's processes outlive a parent that was killed.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_follow_parent, name="parent-watch", daemon=True).start()


def _follow_parent() -> None:
    if parent := multiprocessing.parent_process():
        parent.join()
        os._exit(1)
