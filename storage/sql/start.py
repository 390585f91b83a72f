"""Starts the process of a query, which needs only the lake, so that it imports its libraries while the caller does.

A command starts the process first, so this module imports only the standard library.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from time import monotonic
from urllib.parse import unquote

from evalake.core.errors import QueryError

MEGABYTE = 2**20
GIGABYTE = 2**30

# The process's environment, without any key of a model's provider
_ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "VIRTUAL_ENV", "PYTHONHOME")
_ENVIRONMENT_OF_REMOTE_LAKES = ("AWS_", "AZURE_", "GOOGLE_", "SSL_CERT_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
_KEY_OF_MODELS = re.compile(r"API_?KEY$|^AZURE_(?:AI|OPENAI)_|^AWS_BEARER_TOKEN_BEDROCK$", re.IGNORECASE)


@dataclass(frozen=True)
class Limits:
    """The limits of one query.

    DuckDB may use `memory` bytes; the process may use `spare` bytes more than that and than it has when the query
    begins. The query has `seconds`; from the start of its process to the last row read, it has `whole` seconds.
    """

    seconds: float = 60.0
    whole: float = 120.0
    memory: int = 2 * GIGABYTE
    spare: int = GIGABYTE
    rows: int = 10_000_000
    result: int = GIGABYTE


LIMITS = Limits()


class Deadline:
    """The end of a query's whole time."""

    def __init__(self, limits: Limits) -> None:
        self._seconds = limits.whole
        self._end = monotonic() + limits.whole

    @property
    def left(self) -> float:
        """The seconds left, 0 after the end."""
        return max(0.0, self._end - monotonic())

    def require_time(self) -> None:
        """Raise QueryError where the deadline has passed."""
        if not self.left:
            raise QueryError(
                f"the query was stopped at its limit of {self._seconds:g} s from its start to its last row"
            )


@dataclass(frozen=True)
class QueryProcess:
    """A process that waits for its request, and its deadline."""

    process: "subprocess.Popen[bytes]"
    deadline: Deadline


@contextmanager
def start(lake: str, limits: Limits = LIMITS) -> Iterator[QueryProcess]:
    """Start the process for a query, confined to the lake; it ends with the block."""
    deadline = Deadline(limits)
    process = subprocess.Popen(
        [sys.executable, "-P", "-B", "-m", "evalake.storage.sql"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=_environment(lake),
    )
    assert process.stdin is not None
    asked = {"lake": _folder(lake), "seconds": limits.whole}
    timer = Timer(deadline.left, process.kill)  # in case it has not set its own alarm
    timer.daemon = True
    timer.start()
    try:
        with suppress(BrokenPipeError):  # the exit code of an ended process says why
            process.stdin.write(json.dumps(asked).encode() + b"\n")
            process.stdin.flush()
        yield QueryProcess(process, deadline)
    finally:
        if process.poll() is None:
            process.kill()
        with suppress(BrokenPipeError), process:
            pass
        timer.cancel()


def _folder(uri: str) -> str | None:
    """Find the folder of a lake; None for a remote one."""
    if uri.startswith("file://"):
        return unquote(uri.removeprefix("file://"))
    return None if "://" in uri else str(Path(uri).absolute())


def _environment(lake: str) -> dict[str, str]:
    """Build the process's environment: a local lake needs no credentials, a remote one none of models' providers."""
    beginnings = _ENVIRONMENT_OF_REMOTE_LAKES if _folder(lake) is None else ()
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in _ENVIRONMENT or (name.upper().startswith(beginnings) and not _KEY_OF_MODELS.search(name))
    }
    path = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
    return {**kept, "PYTHONPATH": path, "POLARS_MAX_THREADS": "2"}
