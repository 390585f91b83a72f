"""Where a service listens, who can reach it there, and how it is served."""

import gc
import math
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from core.errors import UsageError
from service.hosts import LOOPBACK_NAMES
from service.protocol import bounded_protocol
from service.security import SecurityHeaders
from service.settings import TOKEN_VARIABLE, Settings


def require_reachable_by_whom(settings: Settings, host: str) -> None:
    """Raise UsageError for an address that others reach, where the service has no way to tell who asks."""
    if settings.is_open and host not in LOOPBACK_NAMES:
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


class Server(uvicorn.Server):
    """A server of an application, for the whole life of a process."""

    def __init__(
        self,
        app: ASGIApp,
        settings: Settings,
        listener: socket.socket,
        announce: Callable[[str], None],
        **differences: Any,
    ) -> None:
        limits = settings.configuration.service
        usual = {
            "http": bounded_protocol(limits.request_seconds, limits.connections),
            "log_level": "warning",
            "server_header": False,
            "timeout_keep_alive": math.ceil(limits.request_seconds),  # not five seconds, after which clients leave, too
            "proxy_headers": False,  # trusted proxies are named in evalake.toml
        }
        super().__init__(uvicorn.Config(SecurityHeaders(app), **usual, **differences))  # type: ignore[arg-type]
        self._listener, self._announce = listener, announce

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve at the listener until told to stop."""
        super().run(sockets or [self._listener])

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and announce the address."""
        await super().startup(sockets)
        if self.started:
            spare_what_lasts()
            self._announce(address_of(self._listener))


def spare_what_lasts() -> None:
    """Shorten the pauses of a service that has just started: no request is answered while one thread holds Python.

    The garbage collector looks through all objects now and then, which takes a tenth of a second where libraries have
    made hundreds of thousands of them: those of the start stay, so it passes them over.
    """
    gc.collect()
    gc.freeze()
