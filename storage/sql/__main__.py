"""The process of one query. It confines itself and sets its alarm before any thread starts."""

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from evalake.storage.sql.start import confine

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


if __name__ == "__main__":
    answer_and_end()
