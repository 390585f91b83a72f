"""The line between a process and the one that started it: the child reports over it, and ends when its parent is gone.

The line is one end of a socket pair on standard input. Only these two processes hold it: nobody else can report that
the child is ready, and a parent that is killed closes it.

`python -m service.lifeline MODULE …` runs a library's module at such a line.
"""

import os
import runpy
import signal
import sys
import threading
from collections.abc import Callable

READY = b"ready\n"
GRACE_SECONDS = 6.0  # a service has two of them to end, and 20 seconds in all


def follow_parent(grace_seconds: float = GRACE_SECONDS, *, silently: bool = False) -> Callable[[], None]:
    """End this process and its group when the parent has ended, first by SIGTERM.

    Args:
        grace_seconds: How long it may take after SIGTERM.
        silently: Write nothing to standard error from then on, so that its readers need not wait.

    Returns:
        A function that reports to the parent that this process accepts requests.
    """
    line = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)  # what this process starts does not hold the line

    def wait() -> None:
        _read_to_end(line)
        if silently:
            os.dup2(nothing, 2)
        threading.Thread(target=_end_group, args=(grace_seconds,), name="end-group", daemon=False).start()
        main = threading.main_thread().ident
        assert main is not None
        signal.pthread_kill(main, signal.SIGTERM)  # which may be waiting for a signal

    threading.Thread(target=wait, name="lifeline", daemon=True).start()
    return lambda: _report(line)


def _read_to_end(line: int) -> None:
    try:
        while os.read(line, 1):
            pass
    except ConnectionError:  # the parent has ended without reading the report
        return


def _end_group(grace_seconds: float) -> None:
    """End all processes of the group once this one has ended its main thread, or its time is over."""
    threading.main_thread().join(grace_seconds)
    os.killpg(0, signal.SIGKILL)


def _report(line: int) -> None:
    try:
        os.write(line, READY)
    except BrokenPipeError:  # the parent has ended, so this process ends, too
        return


def run(module: str, *arguments: str) -> None:
    """Run a module as `python -m` does, until it ends or the parent does."""
    # Prefect's worker sends itself SIGINT to end, which a script's background processes ignore.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    follow_parent()
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    run(*sys.argv[1:])
