"""Python modules that tests run as processes: copies of a fork server, which has imported what they import.

A copy is a child of the process of the tests, with the streams, folder and environment that it is given, like any other
process; it only need not import Prefect for seconds. How processes start is seen where they start by themselves, as in
tests/e2e/test_up.py and tests/e2e/test_deploy.py.
"""

import ctypes
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evalake.cli.environment import DEFAULTS
from tests.servers.fork_server import COMMAND, LENGTH, PID

ROOT = Path(__file__).resolve().parents[2]
_MOST = 6  # fork servers, for each keeps some 300 MB
_SET_SUBREAPER = 36  # of prctl: its process becomes the parent of what its children leave behind
# How the names of variables begin that libraries read when they are imported
_READ_AT_IMPORT = (
    "ARROW_",
    "DASK_",
    "EVALAKE_DASK_",
    "EVALAKE_DIRECT_CALLS",
    "EVALAKE_LOG_FORMAT",
    "EVALAKE_TASK_RUNNER",
    "LANG",
    "LC_",
    "LD_",
    "LITELLM_",
    "MALLOC_",
    "OMP_",
    "OPENBLAS_",
    "OTEL_",
    "POLARS_",
    "PREFECT_",
    "PYTHON",
    "SSL_",
    "TOKIO_",
    "TZ",
    "_RJEM_",
)
# Of what Prefect and others read when they are imported, these are read again in a copy, or only then.
_READ_AGAIN = frozenset(
    {
        "EVALAKE_TELEMETRY",
        "HOME",
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "PREFECT_API_AUTH_STRING",
        "PREFECT_API_BLOCKS_REGISTER_ON_START",
        "PREFECT_API_URL",
        "PREFECT_CLIENT_MAX_RETRIES",
        "PREFECT_HOME",
        "PREFECT_SERVER_API_AUTH_STRING",
        "PREFECT_SERVER_CORS_ALLOWED_ORIGINS",
        "PREFECT_SERVER_DATABASE_CONNECTION_URL",
        "PREFECT_SERVER_DATABASE_MIGRATE_ON_START",
        "PREFECT_SERVER_UI_API_URL",
        "PREFECT_WORKER_QUERY_SECONDS",
        "PREFECT__FLOW_RUN_ID",
        "PYTHONPATH",
        "TMPDIR",
        "XDG_CACHE_HOME",
        "XDG_CONFIG_HOME",
        "XDG_STATE_HOME",
    }
)


class Copy(subprocess.Popen[Any]):
    """The process of `python -m` with some words."""

    def __init__(self, *words: str, cwd: Path, env: Mapping[str, str], **streams: Any) -> None:
        super().__init__([sys.executable, "-m", *words], cwd=cwd, env=env, **streams)

    def _execute_child(self, args: Sequence[str], *others: Any) -> None:
        """Take the place of the fork and exec in `subprocess` (CPython 3.11 to 3.14)."""
        _, _, _, _, cwd, env, _, _, _, stdin, _, _, stdout, _, stderr, *_ = others
        streams = [inherited if stream == -1 else stream for inherited, stream in enumerate((stdin, stdout, stderr))]
        copied = _copied(args[2:], cwd, env, streams)
        if copied is None:
            super()._execute_child(args, *others)  # type: ignore[misc]
            return
        self.pid, self._child_created = copied, True
        self._close_pipe_fds(*others[9:15])  # type: ignore[attr-defined]


class _ForkServer:
    def __init__(self, environment: Mapping[str, str]) -> None:
        self._connection, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.servers.fork_server", str(theirs.fileno()), str(os.getpid())],
                cwd=ROOT,
                env={name: value for name, value in environment.items() if name != "PYTHONPATH"},
                pass_fds=[theirs.fileno()],
            )

    def fork(self, words: Sequence[str], folder: Path, environment: Mapping[str, str], streams: list[int]) -> int:
        """Return the copy's process id; 0 where the fork server has threads, which a copy would not have."""
        asked = {"arguments": words, "environment": dict(environment), "folder": str(folder), "umask": _umask()}
        message = json.dumps(asked).encode()
        with _as_parent_of_what_is_left_behind():
            socket.send_fds(self._connection, [LENGTH.pack(len(message))], streams)
            self._connection.sendall(message)
            answer = self._connection.recv(PID.size, socket.MSG_WAITALL)
        assert answer, f"the fork server of the tests ended with {self._process.wait()}"
        return int(PID.unpack(answer)[0])

    def end(self) -> None:
        """End it; its copies go on."""
        self._connection.close()
        self._process.wait()


_fork_servers: dict[tuple[object, ...], _ForkServer] = {}  # by what has to be alike, the one used last at the end
_one_at_a_time = threading.Lock()


def end_fork_servers() -> None:
    """End all fork servers."""
    while _fork_servers:
        _fork_servers.popitem()[1].end()


def _copied(words: Sequence[str], folder: Path, environment: Mapping[str, str], streams: list[int]) -> int | None:
    """Start a copy with these words; returns its process id, or None where it has to start by itself."""
    is_command = words[0] == COMMAND
    alike = {**(DEFAULTS if is_command else {}), **environment}
    key = (is_command, *sorted((name, value) for name, value in alike.items() if _is_read_at_import(name)))
    with _one_at_a_time:
        server = _fork_servers.pop(key, None)
        if server is None:
            if len(_fork_servers) == _MOST:
                _fork_servers.pop(next(iter(_fork_servers))).end()
            server = _ForkServer(environment)
        _fork_servers[key] = server
        return server.fork(words, folder, environment, streams) or None


def _is_read_at_import(name: str) -> bool:
    if name in _READ_AGAIN or name.startswith("PREFECT__"):  # the latter tell one flow run what it is
        return False
    return name.startswith(_READ_AT_IMPORT) or name.lower().endswith("_proxy")


def _umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask


@contextmanager
def _as_parent_of_what_is_left_behind() -> Iterator[None]:
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    assert prctl(_SET_SUBREAPER, 1) == 0, "prctl"
    try:
        yield
    finally:
        prctl(_SET_SUBREAPER, 0)
