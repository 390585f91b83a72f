"""Listening sockets: the process that announces an address binds it once, and those that serve there inherit it."""

import os
import pwd
import socket
import sys
from contextlib import suppress
from pathlib import Path

from core.errors import UsageError

BACKLOG = 2048
_LISTENS = "0A"  # the state in the kernel's table


def listen(host: str, port: int) -> socket.socket:
    """Listen at an address; port 0 takes a free one. Clients that connect before a server accepts wait for it.

    Raises UsageError where that is impossible; it names the process that has the port.
    """
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        if sys.platform == "linux":
            # Takes a port with old connections in TIME_WAIT. A second listener still fails; elsewhere it may take over.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        listener.close()
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"cannot listen on {host}, port {port}: {reason}{_by_whom(port)}") from error
    return listener


def inherited(descriptor: str) -> socket.socket:
    """Take over a listening socket from the parent by its number."""
    return socket.socket(fileno=int(descriptor))


def address_of(listener: socket.socket) -> str:
    """Write the address of a listener as the URL that a browser takes."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _by_whom(port: int) -> str:
    """Say which process listens on a port, or at least whose it is; empty where the kernel shows neither."""
    for table in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in Path("/proc/net", table).read_text().splitlines()[1:]:
                columns = line.split()
                if columns[3] == _LISTENS and int(columns[1].rpartition(":")[2], 16) == port:
                    return _process_with(f"socket:[{columns[9]}]") or f", by a process of {_user(int(columns[7]))}"
    return ""


def _process_with(file: str) -> str:
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if any(os.readlink(each) == file for each in (process / "fd").iterdir()):  # noqa: PTH115 - is no path
                name = (process / "comm").read_text().strip()
                return f", by process {process.name} ({name}): end it by `kill {process.name}`, or take another port"
    return ""


def _user(number: int) -> str:
    try:
        return f"the user {pwd.getpwuid(number).pw_name}"
    except KeyError:
        return f"the user with the id {number}"
