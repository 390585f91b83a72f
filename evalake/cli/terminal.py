"""What people are told beside the answer, a line each, whatever a terminal cannot write and whatever names it holds."""

import os
import signal
import sys
import threading
import time
from io import TextIOWrapper
from pathlib import Path
from types import FrameType

import typer

from evalake.core.redaction import on_one_line


def write_anything() -> None:
    """Write characters that the terminal's encoding lacks as escapes from now on, so that they end nothing.

    A closed stream (`>&-`) ends nothing either: what is written to it is gone.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - for as long as the process lives
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def say(text: str) -> None:
    """Print a message on standard error, in one line: characters that would begin another line are escaped."""
    typer.echo(on_one_line(text), err=True)


def say_error(message: str) -> None:
    """Say what is wrong."""
    say(f"evalake: {message}")


# The first line of a command that takes more than a second, for people at a terminal: what it begins with.


DOING = {
    "check": "reading the tables",
    "doctor": "looking at server, keys and lake",
    "import": "reading the recorded results",
    "init": "writing the project",
    "run": "reading the suite, its samples and the ledger",
    "serve": "starting the service",
}


def say_what_is_done(command: str) -> None:
    """Write what a slow command begins with; nothing where standard error is no terminal."""
    if command in DOING and sys.stderr.isatty():
        say(f"{DOING[command]} …")


# Ctrl-C: calls in flight end, what was answered is kept, the run is marked, and the process leaves. A second: at once.


INTERRUPTED = 130  # 128 + SIGINT, as shells have it
LOOK_SECONDS = 0.05

_ending, _left = threading.Event(), threading.Lock()


def end_on_ctrl_c() -> None:
    """Make Ctrl-C end the process as this module says, from now on."""
    signal.signal(signal.SIGINT, _wind_down)


def _wind_down(number: int, frame: FrameType | None) -> None:
    from evalake.tasks.runtime import resources, runs

    signal.signal(signal.SIGINT, _leave)
    _ending.set()
    runs.interrupted.set()
    resources.end_calls("interrupted")
    if count := resources.calls_in_flight():
        calls = "1 call in flight is" if count == 1 else f"{count} calls in flight are"
        say_error(f"{calls} finishing; press Ctrl-C again to stop at once")
        threading.Thread(target=_leave_when_done, name="interrupt", daemon=True).start()
    else:
        _leave()


def leave_if_interrupted() -> None:
    """End the process where Ctrl-C was pressed, and the flow has ended before all calls in flight were looked for."""
    if _ending.is_set():
        _leave()
        signal.pause()  # another thread is ending the process


def _leave_when_done() -> None:
    from evalake.tasks.runtime import resources

    while resources.calls_in_flight():
        time.sleep(LOOK_SECONDS)
    _leave()


def _leave(number: int = signal.SIGINT, frame: FrameType | None = None) -> None:
    from evalake.tasks.runtime import progress, resources, runs

    if not _left.acquire(blocking=False):
        return
    progress.end_bars()
    resources.end_calls("interrupted")
    resources.end_writers()  # so that the run's row and the ledger say the same
    runs.mark_interrupted()
    say_error("interrupted; what was answered is in the ledger, a rerun asks only for the rest")
    os._exit(INTERRUPTED)
