"""The process of a query: started with nothing but the lake, so that it imports what it needs while the caller does.

Nothing heavy is imported here: a command starts the process before all else.
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

# The process gets these and nothing else: no key of a model's provider can be in its memory.
_ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "VIRTUAL_ENV", "PYTHONHOME")
_ENVIRONMENT_OF_REMOTE_LAKES = ("AWS_", "AZURE_", "GOOGLE_", "SSL_CERT_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
_KEY_OF_MODELS = re.compile(r"API_?KEY$|^AZURE_(?:AI|OPENAI)_|^AWS_BEARER_TOKEN_BEDROCK$", re.IGNORECASE)


@dataclass(frozen=True)
class Limits:
    """What one query may use.

    `memory` is the engine's, in bytes; the process as a whole may use `spare` on top of that and of what it has when
    the query begins, for reading tables and for what the engine does not count. The query has `seconds`. All in all,
    from the start of its process, through the opening of tables, to the last row that is read, it has `whole`.
    """

    seconds: float = 60.0
    whole: float = 120.0
    memory: int = 2 * GIGABYTE
    spare: int = GIGABYTE
    rows: int = 10_000_000
    result: int = GIGABYTE


LIMITS = Limits()


class Deadline:
    """When a query must have ended, all in all."""

    def __init__(self, limits: Limits) -> None:
        self._seconds = limits.whole
        self._end = monotonic() + limits.whole

    @property
    def left(self) -> float:
        """The seconds until then; none where it is over."""
        return max(0.0, self._end - monotonic())

    def hold(self) -> None:
        """Raise QueryError where the deadline has passed."""
        if not self.left:
            raise QueryError(
                f"the query was stopped at its time limit of {self._seconds:g} s in all, from its start to its last row"
            )


@dataclass(frozen=True)
class Started:
    """A process that waits for its request, and when it must have answered."""

    process: "subprocess.Popen[bytes]"
    deadline: Deadline


@contextmanager
def start(lake: str, limits: Limits = LIMITS) -> Iterator[Started]:
    """Start the process for a query of a lake, confined to it; it ends with the block."""
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
    timer = Timer(deadline.left, process.kill)  # it may not have set its own alarm yet
    timer.daemon = True
    timer.start()
    try:
        with suppress(BrokenPipeError):  # if it has ended, its exit code says why
            process.stdin.write(json.dumps(asked).encode() + b"\n")
            process.stdin.flush()
        yield Started(process, deadline)
    finally:
        if process.poll() is None:
            process.kill()
        with suppress(BrokenPipeError), process:
            pass
        timer.cancel()


def _folder(uri: str) -> str | None:
    """Find the folder of a lake; None where it is on another machine."""
    if uri.startswith("file://"):
        return unquote(uri.removeprefix("file://"))
    return None if "://" in uri else str(Path(uri).absolute())


def _environment(lake: str) -> dict[str, str]:
    """Build the process's environment: without credentials for a folder, else without those of models' providers."""
    beginnings = _ENVIRONMENT_OF_REMOTE_LAKES if _folder(lake) is None else ()
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in _ENVIRONMENT or (name.upper().startswith(beginnings) and not _KEY_OF_MODELS.search(name))
    }
    path = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
    return {**kept, "PYTHONPATH": path, "POLARS_MAX_THREADS": "2"}
