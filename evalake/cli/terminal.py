"""The command as a process: its environment, its messages on standard error, and its end by Ctrl-C."""

import os
import secrets
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from io import TextIOWrapper
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import typer

from evalake.core.errors import UsageError
from evalake.core.files import write_file
from evalake.core.prefect_settings import PROFILES, ignore_working_directory, prefect_home, prefect_setting
from evalake.core.redaction import on_one_line

if TYPE_CHECKING:
    from evalake.server.local.server import TemporaryServer

DEFAULTS = {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "GX_ANALYTICS_ENABLED": "false",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "PYTHONSAFEPATH": "1",  # child processes import nothing from the working directory
    # Return freed memory of Polars and deltalake soon, by a thread that does not wait for the next allocation: else a
    # run of hundreds of thousands of rows keeps a quarter more. At once would take twice the processor time
    "_RJEM_MALLOC_CONF": "dirty_decay_ms:100,muzzy_decay_ms:0,background_thread:true",
    # A temporary server on a fresh machine needs more than the default of twenty seconds
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
    # The command prints errors as one line; the flow run has the full log
    "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
}

_PASSWORD, _SERVER_PASSWORD = "PREFECT_API_AUTH_STRING", "PREFECT_SERVER_API_AUTH_STRING"
_ORIGINS = "PREFECT_SERVER_CORS_ALLOWED_ORIGINS"


def prepare() -> None:
    """Set the unset variables. Call it before Prefect or LiteLLM is imported."""
    for name, value in DEFAULTS.items():
        os.environ.setdefault(name, value)
    ignore_working_directory()
    os.environ.setdefault(PROFILES, str(prefect_home() / "profiles.toml"))
    if not names_a_server():
        lock_server()
    if not sys.warnoptions:  # warnings of one library about another
        warnings.simplefilter("ignore")


def names_a_server() -> bool:
    """Tell whether the environment or Prefect's active profile names a Prefect server."""
    return bool(prefect_setting("PREFECT_API_URL"))


@cache
def lock_server() -> str | None:
    """Set a password, shared with child processes, and refuse other origins, for every server that this command starts.

    By default, Prefect has no password and allows every origin: any page in a browser on this machine could then
    read stored secrets, and run commands by a worker.

    Returns:
        The new password; None where one was set.
    """
    chosen = prefect_setting(_SERVER_PASSWORD) or prefect_setting(_PASSWORD)
    password = chosen or f"evalake:{secrets.token_urlsafe(32)}"
    os.environ[_SERVER_PASSWORD] = password
    for name, value in ((_PASSWORD, password), (_ORIGINS, "https://nobody.invalid")):
        os.environ[name] = prefect_setting(name) or value
    return None if chosen else password


# Prepares this process for the flows that a command runs in it.


def start_server() -> "TemporaryServer | None":
    """Start a Prefect server in the background, where none is named; raises ServerError where it could keep nothing."""
    from evalake.server.local.server import TemporaryServer
    from evalake.tasks.runtime.server import require_writable

    if names_a_server():
        return None
    require_writable(prefect_home())
    return TemporaryServer()


@contextmanager
def flows_begun(server: "TemporaryServer | None") -> Iterator[None]:
    """Use the command's own server or the named one; Ctrl-C then lets running calls end.

    Raises ServerError where the named server cannot be used, EvalakeError where the command's own does not start.
    """
    from evalake.tasks.runtime.form import CALLER, COMMAND_LINE
    from evalake.tasks.runtime.server import require_server

    require_server()
    end_on_ctrl_c()
    CALLER.set(COMMAND_LINE)
    with server.in_use() if server else nullcontext():
        try:
            yield
        finally:
            exit_if_interrupted()


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
    from evalake.tasks.runtime import resources, runs

    while resources.calls_in_flight() or runs.any_running():  # a run lands what was answered
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
