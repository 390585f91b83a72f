"""How a service is served: who can reach it, at which limits, and when it is announced."""

import gc
import logging
import math
import socket
from collections.abc import Callable
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from typing_extensions import override

from evalake.core.errors import UsageError
from evalake.server.auth import LOOPBACK_NAMES, SecurityHeaders
from evalake.server.limits import Connections
from evalake.server.processes import address_of
from evalake.server.settings import TOKEN_VARIABLE, Settings

# Bytes that the kernel keeps of the answer on one connection. By itself it would keep megabytes, until hundreds of
# connections whose clients read nothing take all that it has for TCP, and no answer is sent to anybody.
SENDING = 131_072
# uvicorn's error for a WebSocket that access control has answered in place of accepting it
_REFUSED = "ASGI callable returned without completing handshake."


def require_reachable_by_whom(settings: Settings, host: str) -> None:
    """Raise UsageError for an address that others reach, where the service has no way to tell who asks."""
    if settings.is_open and host not in LOOPBACK_NAMES:
        raise UsageError(
            f"--host {host} is reachable by others: set {TOKEN_VARIABLE}, or [service] trusted_proxies in evalake.toml"
        )


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
        self._connections = Connections(limits.connections, limits.request_seconds)
        usual = {
            "http": self._connections.protocol(),
            "log_level": "warning",
            "server_header": False,
            "timeout_keep_alive": math.ceil(limits.request_seconds),  # not five seconds, after which clients leave, too
            "proxy_headers": False,  # trusted proxies are named in evalake.toml
        }
        super().__init__(uvicorn.Config(SecurityHeaders(app), **usual, **differences))  # type: ignore[arg-type]
        logging.getLogger("uvicorn.error").addFilter(lambda record: record.msg != _REFUSED)
        self._listener, self._announce = listener, announce

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve at the listener until told to stop."""
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SENDING)  # connections inherit it
        try:
            super().run(sockets or [self._listener])
        finally:
            gc.unfreeze()  # Python ends by collecting modules; what it passes over, libraries in C++ report as leaked

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and announce the address."""
        await super().startup(sockets)
        if self.started:
            spare_what_lasts()
            self._announce(address_of(self._listener))

    @override
    async def on_tick(self, counter: int) -> bool:
        self._connections.end_overdue()
        return await super().on_tick(counter)


def spare_what_lasts() -> None:
    """Shorten the pauses of a service that has just started: no request is answered while one thread holds Python.

    The garbage collector looks through all objects now and then, which takes a tenth of a second where libraries have
    made hundreds of thousands of them: those of the start stay, so it passes them over.
    """
    gc.collect()
    gc.freeze()
