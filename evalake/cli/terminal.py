"""Messages on standard error, one line each, with unsafe characters escaped; and the handling of Ctrl-C."""

import os
import signal
import sys
import threading
import time
from io import TextIOWrapper
from pathlib import Path
from types import FrameType

import typer

from evalake.core.errors import UsageError
from evalake.core.files import write_file
from evalake.core.redaction import on_one_line


def escape_unencodable() -> None:
    """Escape characters that the terminal's encoding lacks, from now on.

    Output to a closed stream (`>&-`) is dropped.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - for as long as the process lives
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def say(text: str) -> None:
    """Print a message on standard error as one line, with line ends escaped."""
    typer.echo(on_one_line(text), err=True)


def say_error(message: str) -> None:
    """Print an error."""
    say(f"evalake: {message}")


# The first line of commands that take more than a second, on a terminal
FIRST_STEPS = {
    "check": "reading the tables",
    "doctor": "looking at server, keys and lake",
    "import": "reading the recorded results",
    "init": "writing the project",
    "run": "reading the suite, its samples and the ledger",
    "serve": "starting the service",
}


def say_first_step(command: str) -> None:
    """Print the first step of a slow command, on a terminal."""
    if command in FIRST_STEPS and sys.stderr.isatty():
        say(f"{FIRST_STEPS[command]} …")


INTERRUPTED = 130  # 128 + SIGINT, as shells have it
LOOK_SECONDS = 0.05

_ending, _exiting = threading.Event(), threading.Lock()


def end_on_ctrl_c() -> None:
    """Handle Ctrl-C: running calls end, and the run is marked. A second Ctrl-C exits at once."""
    signal.signal(signal.SIGINT, _on_interrupt)


def _on_interrupt(number: int, frame: FrameType | None) -> None:
    from evalake.tasks.runtime import resources, runs

    signal.signal(signal.SIGINT, _exit)
    _ending.set()
    runs.interrupted.set()
    resources.end_calls("interrupted")
    if count := resources.calls_in_flight():
        calls = "1 call in flight is" if count == 1 else f"{count} calls in flight are"
        say_error(f"{calls} finishing; press Ctrl-C again to stop at once")
        threading.Thread(target=_exit_when_done, name="interrupt", daemon=True).start()
    else:
        _exit()


def exit_if_interrupted() -> None:
    """Exit after Ctrl-C, where the flow has ended first."""
    if _ending.is_set():
        _exit()
        signal.pause()  # another thread is ending the process


def _exit_when_done() -> None:
    from evalake.tasks.runtime import resources

    while resources.calls_in_flight():
        time.sleep(LOOK_SECONDS)
    _exit()


def _exit(number: int = signal.SIGINT, frame: FrameType | None = None) -> None:
    from evalake.tasks.runtime import progress, resources, runs

    if not _exiting.acquire(blocking=False):
        return
    progress.end_bars()
    resources.end_calls("interrupted")
    resources.end_writers()  # so that the run's row and the ledger agree
    runs.mark_interrupted()
    say_error("interrupted; the replies so far are in the ledger, a rerun asks only for the rest")
    os._exit(INTERRUPTED)


def write_text(path: Path, text: str) -> None:
    """Write a file that an option names. Raises UsageError where it cannot be written."""
    try:
        write_file(path, text)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error
