"""Makes Python processes for tests: copies of one that has imported already what they would import for seconds.

`python -m tests.servers.fork_server SOCKET OWNER`: each copy is a child of the owner, the process of the tests.
"""

import atexit
import gc
import json
import os
import runpy
import select
import signal
import socket
import struct
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, TextIO, cast

from evalake.cli import environment
from evalake.core.prefect_settings import ignore_working_directory

LENGTH, PID = struct.Struct("!I"), struct.Struct("!i")
STREAMS = 3
# Threads of libraries that a copy does not need: one gives memory back, one removes temporary files
_HARMLESS_THREADS = ("jemalloc_bg_thd", "polars-ooc-clea")
NONE = 0  # in place of a process id, where there can be no copy
COMMAND = "cli"
WORKER = ("prefect", "worker")
DASK_WORKER = ("distributed.cli.dask_worker",)
FIRST = ("evalake.flows.evaluate", "prefect.flow_engine", "prefect.task_engine", "fastapi.encoders")  # of a flow run
_PREFECT = ("prefect.cli",)
_DASK = ("distributed.scheduler", "distributed.worker", "distributed.nanny", "distributed.http.scheduler")
# What `python -m` with these words imports before long; of those that fit, the longest words count.
_IMPORTS: Mapping[tuple[str, ...], Sequence[str]] = {
    ("prefect",): _PREFECT,
    ("prefect", "server"): (*_PREFECT, "prefect.cli.server", "prefect.server.api.server", "uvicorn"),
    WORKER: (*_PREFECT, "prefect.cli.worker", "prefect.workers.process", *FIRST),
    ("prefect", "--no-prompt", "deploy"): (*_PREFECT, "prefect.cli.deploy"),
    ("prefect", "flow-run"): (*_PREFECT, *FIRST),
    ("prefect.engine",): FIRST,
    ("distributed.cli.dask_scheduler",): _DASK,
    DASK_WORKER: (*_DASK, "prefect_dask", *FIRST),
    (COMMAND,): ("evalake.cli.main",),
    (COMMAND, "doctor"): ("evalake.cli.doctor", "prefect.client.orchestration"),
    (COMMAND, "import"): ("evalake.cli.import_results", "evalake.admin.import_results"),
    (COMMAND, "maintain"): ("evalake.cli.maintain", "evalake.admin.maintain"),
    (COMMAND, "run"): (*FIRST, "litellm", "evalake.reports.console", "evalake.server.local.server"),
    (COMMAND, "serve"): ("evalake.server.app",),
}


def serve(connection: socket.socket, owner: int) -> bool:
    """Fork for each request.

    Returns:
        Whether this is a copy, and to be what was asked for; the fork server itself returns once its owner has gone.
    """
    asked = Counter[tuple[str, ...]]()
    while (received := _receive(connection)) is not None:
        request, streams = received
        known = _known(tuple(request["arguments"]))
        _import(known)
        asked[known] += 1
        if asked[WORKER] + asked[DASK_WORKER] > 1:  # one alone would import it as late as the fork server
            _import_the_rest()
        if _has_threads():
            connection.sendall(PID.pack(NONE))
        elif between := os.fork():
            os.waitpid(between, 0)
        elif os.fork():
            os._exit(0)  # which makes the owner the parent of the copy
        else:
            _await_end_of_parent(owner)
            connection.sendall(PID.pack(os.getpid()))
            connection.close()
            _begin(request, streams)
            return True
        for stream in streams:
            os.close(stream)
    return False


def _receive(connection: socket.socket) -> tuple[Mapping[str, Any], list[int]] | None:
    length, streams, _, _ = socket.recv_fds(connection, LENGTH.size, STREAMS)
    if not length:
        return None
    return json.loads(connection.recv(LENGTH.unpack(length)[0], socket.MSG_WAITALL)), streams


def _known(words: tuple[str, ...]) -> tuple[str, ...]:
    return max((known for known in _IMPORTS if words[: len(known)] == known), key=len, default=())


@cache
def _import(known: tuple[str, ...]) -> None:
    """Import, once, what processes whose words begin with these would have to import, too."""
    if known[:1] == (COMMAND,):
        for name, value in environment.DEFAULTS.items():
            os.environ.setdefault(name, value)
    for name in _IMPORTS.get(known, ()):
        import_module(name)
    gc.collect()
    gc.freeze()


@cache
def _import_the_rest() -> None:
    """Import all flows and LiteLLM; nothing of it starts a thread."""
    import flows
    from evalake.models.direct import warm_up

    for module in iter_modules(flows.__path__):
        import_module(f"evalake.flows.{module.name}")
    warm_up()
    gc.collect()
    gc.freeze()


def _await_end_of_parent(next_parent: int) -> None:
    """Wait until the parent has ended, where it has not, and the next one has taken its place."""
    if (parent := os.getppid()) != next_parent:
        with suppress(ProcessLookupError):  # it has ended meanwhile
            ended = os.pidfd_open(parent)
            select.select([ended], [], [])
            os.close(ended)


def _begin(request: Mapping[str, Any], streams: Sequence[int]) -> None:
    """Have the folder, environment, streams and signals of a process that is started in the usual way."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    _take_the_callers_place(request)
    sys.path[:1] = [request["folder"], *_path_of(os.environ)]
    tempfile.tempdir = None
    atexit.register(gc.unfreeze)
    if "prefect.context" in sys.modules:
        _read_settings_again()


def _has_threads() -> bool:
    """Tell whether a library has started threads: a fork copies the locks that they hold, but not them."""
    native = (Path(task, "comm").read_text().strip() for task in Path("/proc/self/task").iterdir())
    own = Path("/proc/self/comm").read_text().strip()
    return threading.active_count() > 1 or any(name not in (own, *_HARMLESS_THREADS) for name in native)


def _take_the_callers_place(request: Mapping[str, Any]) -> None:
    sys.stdin, sys.stdout, sys.stderr = (_opened(stream) for stream in (sys.stdin, sys.stdout, sys.stderr))
    os.umask(request["umask"])
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = request["arguments"]
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _opened(stream: TextIO) -> TextIO:
    """Open a standard stream as Python does at its start: its number now stands for another file."""
    number = stream.fileno()
    by_line = os.isatty(number) or stream is sys.stderr
    opened = open(  # noqa: SIM115 - for as long as the process lives
        number, stream.mode, 1 if by_line else -1, stream.encoding, stream.errors, closefd=False
    )
    return cast(TextIO, opened)


def _path_of(variables: Mapping[str, str]) -> list[str]:
    entries = variables.get("PYTHONPATH", "").split(os.pathsep)
    return [entry for entry in entries if entry]


def _read_settings_again() -> None:
    """Have Prefect read its settings where they are asked for first: a command sets some, and then imports it."""
    from prefect import context

    get = context.SettingsContext.get

    def get_what_is_new() -> Any:
        context.SettingsContext.get = get  # type: ignore[method-assign]
        context.refresh_global_settings_context()
        return get()

    context.SettingsContext.get = get_what_is_new  # type: ignore[method-assign]


def main(descriptor: int, owner: int) -> None:
    """Serve requests until the owner has gone; in a copy, be what was asked for."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C is for the tests
    ignore_working_directory()  # as the command does
    if not serve(socket.socket(fileno=descriptor), owner):
        os._exit(0)
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
