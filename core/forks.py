"""Whether this process may be forked."""

import threading
from pathlib import Path

# Threads of libraries that a copy does not need: one that gives memory back, and one that removes temporary files
_HARMLESS_THREADS = ("jemalloc_bg_thd", "polars-ooc-clea")


def has_threads() -> bool:
    """Tell whether a library has started threads: a fork copies the locks that they hold, but not them."""
    native = (Path(task, "comm").read_text().strip() for task in Path("/proc/self/task").iterdir())
    own = Path("/proc/self/comm").read_text().strip()  # of OpenBLAS's threads, too, for which it handles forks
    return threading.active_count() > 1 or any(name not in (own, *_HARMLESS_THREADS) for name in native)
