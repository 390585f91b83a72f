"""Where a service listens, and who can reach it there."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from core.errors import UsageError
from service.settings import TOKEN_VARIABLE, Settings

LOOPBACK = ("127.0.0.1", "::1", "localhost")


def require_reachable_by_whom(settings: Settings, host: str) -> None:
    """Raise UsageError for an address that others reach, where the service has no way to tell who asks."""
    if settings.is_open and host not in LOOPBACK:
        raise UsageError(
            f"--host {host} is reachable by others: set {TOKEN_VARIABLE}, or [service] trusted_proxies in evalake.toml"
        )


@contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """Bind the port, before anything else is started, and yield its socket."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise UsageError(f"cannot listen on {host}, port {port}: {reason}") from error
        yield listener


def address_of(listener: socket.socket) -> str:
    """Write the address of a listener as the URL that a browser takes."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
