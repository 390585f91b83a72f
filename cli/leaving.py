"""The end of the command's process: it leaves once all is done, without taking itself apart.

Python would free each of the million objects that were imported, one by one, which takes longer than many a command.
"""

import atexit
import os
import sys


class _Process:
    is_the_commands = False  # not that of a program that calls the command
    code: int | None = None


def end_quickly() -> None:
    """Let this process, which is the command's own, end without freeing its objects."""
    _Process.is_the_commands = True


def leave(code: int) -> None:
    """End with an exit code: threads, and what is registered with `atexit`, end first, as ever."""
    _Process.code = code
    sys.exit(code)


@atexit.register  # what is registered first runs last, so the package imports this before all else
def _leave_at_once() -> None:
    if not _Process.is_the_commands or _Process.code is None:
        return
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except BrokenPipeError:  # the reader has closed the pipe
        pass
    except (OSError, ValueError):  # Python says so, and ends with a code of its own
        return
    os._exit(_Process.code)
