"""Work on a thread of its own, beside a block of code, in the same context."""

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
