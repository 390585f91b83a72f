"""The process of one query: it is started here, and confines itself by Landlock, a part of the Linux kernel.

It sets its alarm, too, before any thread starts. It needs only the lake at first, so that it imports its libraries
while the caller does. A command starts it before all else, so this module imports only the standard library.
"""

import ctypes
import json
import os
import platform
import re
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from time import monotonic
from typing import NoReturn
from urllib.parse import unquote

from evalake.core.errors import QueryError

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # system calls, the same on all architectures but alpha
_VERSION_FLAG, _PATH_BENEATH, _NO_NEW_PRIVILEGES = 1, 1, 38

READ_FILE, READ_FOLDER = 1 << 2, 1 << 3
_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}  # number of file rights, by version
_NEWEST_RIGHTS = 16
_BIND, _CONNECT = 1 << 0, 1 << 1  # TCP, from version 4
_SCOPES = 0b11  # abstract sockets, and signals to other processes, from version 6


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Path(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32))


def landlock_version() -> int:
    """Look up the kernel's version of Landlock; 0 without it."""
    if sys.platform != "linux" or platform.machine() == "alpha":
        return 0
    known: int = _libc().syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_FLAG))
    return max(known, 0)


def confine(readable: Iterable[str | Path], listable: Iterable[str | Path] = (), *, connect: bool = False) -> bool:
    """Limit this process to reading below `readable`; it can no longer write or execute files.

    Call it before any thread starts: running threads stay free.

    Args:
        readable: Files and folders; missing ones are skipped.
        listable: Folders that may be listed, with all folders below.
        connect: Whether TCP connections may be opened; none may be accepted (from Landlock 4, Linux 6.7).

    Returns:
        Whether the kernel enforces this.
    """
    known = landlock_version()
    if not known:
        return False
    handled = _Ruleset(
        files=(1 << _RIGHTS.get(known, _NEWEST_RIGHTS)) - 1,
        network=(_BIND | (0 if connect else _CONNECT)) if known >= 4 else 0,
        scoped=_SCOPES if known >= 6 else 0,
    )
    size = ctypes.c_size_t(8 if known < 4 else 16 if known < 6 else 24)
    ruleset = _call(_CREATE_RULESET, ctypes.byref(handled), size, ctypes.c_uint32(0))
    try:
        for path in readable:
            _allow(ruleset, path, READ_FILE | READ_FOLDER)
        for path in listable:
            _allow(ruleset, path, READ_FOLDER)
        if _libc().prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0:
            raise _error("prctl")
        _call(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    finally:
        os.close(ruleset)
    return True


def _allow(ruleset: int, path: str | Path, rights: int) -> None:
    try:
        folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:  # it does not exist
        return
    try:
        rule = _Path(rights if Path(path).is_dir() else rights & READ_FILE, folder)
        if rule.allowed:
            _call(_ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(_PATH_BENEATH), ctypes.byref(rule), ctypes.c_uint32(0))
    finally:
        os.close(folder)


def _call(number: int, *arguments: object) -> int:
    result: int = _libc().syscall(number, *arguments)
    if result < 0:
        raise _error("Landlock")
    return result


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _error(what: str) -> OSError:
    code = ctypes.get_errno()
    return OSError(code, f"{what}: {os.strerror(code)}")


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
        [sys.executable, "-P", "-B", "-c", "from evalake.storage.sql import start; start.answer_and_end()"],
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


# In the process itself.


# System files that libraries read: code, certificates, host names, time zones, memory limits
_SYSTEM = (
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/usr/share/zoneinfo",
    "/usr/share/ca-certificates",
    "/usr/share/ssl",
    "/etc/ld.so.cache",
    "/etc/ssl",
    "/etc/pki",
    "/etc/ca-certificates",
    "/etc/localtime",
    "/etc/timezone",
    "/etc/hosts",
    "/etc/resolv.conf",
    "/etc/nsswitch.conf",
    "/etc/gai.conf",
    "/etc/host.conf",
    "/dev/null",
    "/dev/urandom",
    "/proc/self",
    "/proc/meminfo",
    "/proc/cpuinfo",
    "/proc/stat",
    "/proc/mounts",
    "/proc/sys/vm",
    "/proc/sys/kernel/osrelease",
    "/sys/devices/system",
    "/sys/fs/cgroup",
    "/sys/kernel/mm",
)

# Credentials of a remote lake, beside the files that the environment names
_CREDENTIALS = (".aws", ".azure", ".config/gcloud")
_PREFIXES = ("AWS_", "AZURE_", "GOOGLE_", "SSL_CERT_")


def main() -> int:
    """Confine this process to the lake in the first line of standard input, then answer the request."""
    request = json.loads(sys.stdin.buffer.readline())
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, request["seconds"])
    lake = request["lake"]
    confine(
        [*_SYSTEM, *_code(), *(_folders(Path(lake)) if lake else _credentials())],
        listable=[*sys.path, *([lake] if lake else [])],
        connect=lake is None,
    )
    from evalake.storage.sql.process import answer

    return answer()


def _code() -> Iterator[Path]:
    """Yield the folders of Python; from other places on the path only the modules and packages."""
    homes = {str(Path(home).resolve()) for home in (sys.prefix, sys.base_prefix, sys.exec_prefix)}
    for entry in map(Path, sys.path):
        if any(entry.resolve().is_relative_to(home) for home in homes) or entry.name.endswith("-packages"):
            yield entry
        elif entry.is_dir():
            yield from (each for each in entry.iterdir() if each.suffix == ".py" or (each / "__init__.py").is_file())
    yield from map(Path, homes)


def _folders(lake: Path) -> Iterator[Path]:
    """Yield the folders of the lake's tables, without those like `_secret`."""
    if lake.is_dir():
        yield from (each for each in lake.iterdir() if not each.name.startswith("_"))


def _credentials() -> Iterator[Path]:
    yield from (Path.home() / name for name in _CREDENTIALS)
    yield from (Path(value) for name, value in os.environ.items() if name.startswith(_PREFIXES) and value[:1] == "/")


def answer_and_end() -> NoReturn:
    """Answer, and exit without cleaning up, because a running thread of DuckDB could crash then."""
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
