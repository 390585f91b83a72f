"""The warm process: `python -m cli.warm.process LAKE`, started by `evalake up` beside its servers.

It imports what commands import, waits at a socket that is its user's alone, and forks for each command that comes: one
copy carries the command out, another waits for that, passes signals on, and tells how it ended. A copy has the caller's
streams, arguments, folder and environment. Where the caller is not like this process (`cli.warm.likeness`), it is
refused, and carries out its command itself.
"""

import gc
import json
import os
import select
import signal
import socket
import struct
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, TextIO, cast

import cli
from cli import environment, waiting
from cli.interrupt import INTERRUPTED
from cli.main import main as command
from cli.warm.client import ACCEPTED, LENGTH, PASSED_ON, PATIENCE_SECONDS, STATUS, address, peer
from cli.warm.likeness import likeness
from service.local.background import WARM

# Threads of libraries that may run during a fork: they are started anew in the copy, or not needed there.
_HARMLESS_THREADS = ("jemalloc_bg_thd", "polars-ooc-clea")
_REFUSED = b"n"
_STREAMS = (0, 1, 2)
# What commands import late, and what libraries import on their first use
_MODULES = (
    "fastapi",
    "flows.evaluate",
    "graphviz",
    "metrics.variance",
    "numpy.ma",
    "prefect.flow_engine",
    "prefect.task_engine",
    "prefect.utilities.visualization",
    "pyarrow.compute",
    "reports.console",
    "reports.page",
    "scipy.special",
    "service.local.temporary",
    "tasks.runtime.server",
    "tasks.steps.report",
    "tenacity",
)


def serve(lake: str) -> None:
    """Import everything, and carry out commands until told to end. A copy returns when its command has ended."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # its keeper ignores it, which a child inherits
    first_environment = dict(os.environ)
    environment.prepare()
    ours = likeness()
    folder = _use_servers(lake)
    _import_everything()
    known = dict(_files())
    while True:
        with _listener(folder) as listener:
            request = _await_command(listener, ours, known)
        if request is not None:
            _carry_out(request)
            return
        # Something was installed or edited since: begin anew with that.
        os.execve(sys.executable, sys.orig_argv, first_environment)


def _use_servers(lake: str) -> Path:
    """Have Prefect use the lake's servers from its import on; returns the folder of their state."""
    from service.local.background import find, folder_of

    if (background := find(lake)) is not None:
        background.use()
    return folder_of(lake)


def _import_everything() -> None:
    for module in iter_modules(cli.__path__):
        if module.name != "__main__" and not module.ispkg:
            import_module(f"cli.{module.name}")
    for name in _MODULES:
        import_module(name)
    from suites.places import FOLDER

    for suite in FOLDER.glob("*/suite.py"):
        import_module(f"suites.{suite.parent.name}.suite")
    _use_once()
    gc.collect()
    gc.freeze()  # a copy need not look through what was there before it


def _use_once() -> None:
    """Use what loads or makes something on its first use, in ways that start no thread."""
    import anyio
    import plotly.graph_objects as go

    from providers.direct import warm_up
    from providers.price_estimate import input_tokens
    from providers.request import Request
    from reports.template import environment as templates

    anyio.run(anyio.sleep, 0)
    warm_up()
    input_tokens(Request("openai/gpt-4o", ({"role": "user", "content": "warm"},), {}))
    for name in templates().list_templates(["html"]):
        templates().get_template(name)
    go.Figure([go.Scatter(), go.Bar(), go.Heatmap()]).to_json()


@contextmanager
def _listener(folder: Path) -> Iterator[socket.socket]:
    (folder / WARM).unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        os.umask(0o077)
        with address(folder) as place:
            listener.bind(place)
        listener.listen()
        yield listener


def _await_command(
    listener: socket.socket, ours: Mapping[str, Any], known: Mapping[str, tuple[int, int]]
) -> dict[str, Any] | None:
    """Wait for commands; returns one in the copy that is to carry it out, and None where files have changed."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel removes copies that have ended
    while True:
        connection, _ = listener.accept()
        with connection, _received(connection) as (request, streams):
            if request is None:
                continue
            if request["likeness"] != ours or _has_threads():
                _answer(connection, _REFUSED)
            elif dict(_files(known)) != known:
                _answer(connection, _REFUSED)
                return None
            elif os.fork() == 0:
                listener.close()
                _become_copy(connection, streams)
                return request


@contextmanager
def _received(connection: socket.socket) -> Iterator[tuple[dict[str, Any] | None, list[int]]]:
    """Receive a command's request and its streams, which are closed here at the end; None where not all of it came."""
    streams: list[int] = []
    request = None
    try:
        with suppress(OSError, ValueError, struct.error):  # the caller has gone
            if peer(connection) == os.geteuid():
                connection.settimeout(PATIENCE_SECONDS)
                length, streams, _, _ = socket.recv_fds(connection, LENGTH.size, len(_STREAMS))
                request = json.loads(connection.recv(LENGTH.unpack(length)[0], socket.MSG_WAITALL))
        yield (request or None if len(streams) == len(_STREAMS) else None), streams
    finally:
        for stream in streams:
            os.close(stream)


def _answer(connection: socket.socket, answer: bytes) -> None:
    with suppress(OSError):
        connection.sendall(answer)


def _has_threads() -> bool:
    """Tell whether a library has started threads meanwhile: a fork copies the locks that they hold, but not them."""
    native = (Path(task, "comm").read_text().strip() for task in Path("/proc/self/task").iterdir())
    own = Path("/proc/self/comm").read_text().strip()  # of OpenBLAS's threads, too, for which it handles forks
    return threading.active_count() > 1 or any(name not in (own, *_HARMLESS_THREADS) for name in native)


def _files(known: Mapping[str, object] | None = None) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the files of all modules that are imported, or those that were known, with size and time."""
    files = known if known is not None else {getattr(each, "__file__", None) for each in sys.modules.values()}
    for file in files:
        with suppress(OSError, TypeError):
            there = os.stat(file)  # type: ignore[arg-type] # noqa: PTH116 - thousands of them
            yield file, (there.st_size, there.st_mtime_ns)  # type: ignore[misc]


def _become_copy(connection: socket.socket, streams: Sequence[int]) -> None:
    """Fork once more, in a copy: the child returns, to carry the command out; the copy waits for it, and exits."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()  # signals to the servers or from a terminal do not reach it, but those that its caller sends
    signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)  # until the child has handlers of its own
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        for passed_on in PASSED_ON:
            signal.signal(passed_on, signal.SIG_DFL)  # whatever ignored it for the servers
        signal.signal(signal.SIGINT, _end_interrupted)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
        for number, stream in zip(_STREAMS, streams, strict=True):
            os.dup2(stream, number)
        return
    with suppress(OSError):  # the child does the same: a signal that comes before it did would find no such group
        os.setpgid(child, child)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
    for stream in streams:
        os.close(stream)
    with suppress(OSError):
        _wait(connection, child)
    os._exit(0)


def _end_interrupted(*_: object) -> None:
    """End as an interrupted command does, where the command that would do so has not begun yet."""
    os._exit(INTERRUPTED)


def _wait(connection: socket.socket, child: int) -> None:
    connection.settimeout(None)
    connection.sendall(ACCEPTED)
    ended = os.pidfd_open(child)
    while ended not in select.select([ended, connection.fileno()], [], [])[0]:
        numbers = connection.recv(16)
        _pass_on(child, numbers)
        if not numbers:  # the caller has gone
            os.waitpid(child, 0)
            return
    connection.sendall(STATUS.pack(os.waitpid(child, 0)[1]))


def _pass_on(child: int, numbers: bytes) -> None:
    for number in numbers or bytes([signal.SIGTERM]):
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGSTOP if number == signal.SIGTSTP else number)


def _opened(stream: TextIO) -> TextIO:
    """Open a standard stream anew, as Python does at its start: its number now stands for another file."""
    number = stream.fileno()
    by_line = os.isatty(number) or stream is sys.stderr
    opened = open(  # noqa: SIM115 - for as long as the process lives
        number, stream.mode, 1 if by_line else -1, stream.encoding, stream.errors, closefd=False
    )
    return cast(TextIO, opened)


def _carry_out(request: Mapping[str, Any]) -> None:
    """Carry out a command in this copy; SystemExit tells its exit code."""
    sys.stdin, sys.stdout, sys.stderr = (_opened(stream) for stream in (sys.stdin, sys.stdout, sys.stderr))
    os.umask(request["umask"])
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = request["arguments"]
    waiting.SAID = True  # by the caller
    signal.signal(signal.SIGINT, signal.default_int_handler)
    command()


if __name__ == "__main__":
    serve(sys.argv[1])
