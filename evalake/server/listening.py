"""Serving: the reachable addresses, the limits of connections, and the announcement of the address.

A connection is a stranger's until access control lets in a request on it. Strangers have at most half of all
connections, and each address at most half of theirs. Beyond that, their oldest connection makes room for a new one.
So users always find room: they show their token with the first request.

uvicorn has none of these limits. It counts all connections alike, and sets no deadline for a client's headers.
"""

import asyncio
import gc
import logging
import math
import socket
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import h11
import uvicorn
from starlette.types import ASGIApp
from typing_extensions import override
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from evalake.core.errors import UsageError
from evalake.server.auth import CONNECTION, LOOPBACK_NAMES, SecurityHeaders
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
            gc.unfreeze()  # Python ends by collecting modules; frozen objects of C++ libraries are reported as leaked

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and announce the address."""
        await super().startup(sockets)
        if self.started:
            # A full collection holds every request up for a second, so it leaves out the objects of the start
            gc.collect()
            gc.freeze()
            self._announce(address_of(self._listener))

    @override
    async def on_tick(self, counter: int) -> bool:
        self._connections.end_overdue()
        return await super().on_tick(counter)

    @override
    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._connections.end_owing()  # else their requests are waited for, and cancelled with a traceback
        await super().shutdown(sockets)


BUSY = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 0\r\nretry-after: 5\r\n\r\n"
FRESH_SECONDS = 1.0  # for a first request to be read; a younger connection makes room only where there is none at all

_OWED = (h11.IDLE, h11.SEND_BODY)  # the client has still to send a request's headers, or its body


class Connections:
    """The open connections of a server.

    Args:
        most: How many may be open at once.
        request_seconds: How long the headers of a request may take, then its body, then each part of the answer.
    """

    def __init__(self, most: int, request_seconds: float) -> None:
        self._most, self._of_strangers, self._of_one_address = most, max(1, most // 2), max(1, most // 4)
        self._seconds = request_seconds
        self._open: set[Connection] = set()

    def protocol(self) -> type[asyncio.Protocol]:
        """Return what uvicorn creates for each connection."""
        return cast(type[asyncio.Protocol], partial(Connection, among=self))

    def admit(self, new: "Connection") -> bool:
        """Take a connection, and close a stranger's older one beyond a limit; False without room."""
        self._open = {each for each in self._open if not each.transport.is_closing()}
        strangers = [each for each in self._open if not each.is_let_in]
        if len(self._open) >= self._most:
            if not strangers:
                return False
            self._close(min(strangers, key=lambda each: each.since))
        else:
            neighbours = [each for each in strangers if each.address == new.address]
            is_crowd = len(neighbours) >= self._of_one_address
            crowd = neighbours if is_crowd else strangers if len(strangers) >= self._of_strangers else []
            if settled := [each for each in crowd if not each.is_fresh()]:
                self._close(min(settled, key=lambda each: each.since))
        self._open.add(new)
        return True

    def end_overdue(self) -> None:
        """Close the connections whose client lets the server wait for too long."""
        for each in list(self._open):
            if each.transport.is_closing():
                self._open.discard(each)
            elif each.waits_seconds() > self._seconds:
                self._close(each)

    def end_owing(self) -> None:
        """Close the connections whose client has still to send a request, or the rest of one."""
        for each in list(self._open):
            if each.owes:
                self._close(each)

    def _close(self, connection: "Connection") -> None:
        self._open.discard(connection)
        connection.transport.abort()


class Connection(H11Protocol):
    """One connection. Its deadlines are fixed from the start: a client that sends a byte a second gains nothing."""

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        among: Connections,
    ) -> None:
        super().__init__(config, server_state, {**app_state, CONNECTION: self}, _loop)
        self._among, self.is_let_in = among, False
        self._owed: tuple[object, object] = (None, h11.IDLE)  # the request that came last, and what the client owes
        self.since = self._unread_since = self.loop.time()

    @property
    def address(self) -> str:
        """The client's address."""
        return self.client[0] if self.client else ""

    @property
    def owes(self) -> bool:
        """Whether the client has still to send a request, or the rest of one; a WebSocket's does not."""
        return self.transport.get_protocol() is self and self._owed[1] in _OWED

    def is_fresh(self) -> bool:
        """Tell whether the client can hardly have sent its first request."""
        return self.cycle is None and self.loop.time() - self.since < FRESH_SECONDS

    def waits_seconds(self) -> float:
        """Compute how long the server has waited for a request, its body, or the client to read an answer."""
        if self.transport.get_protocol() is not self:  # a WebSocket has deadlines of its own
            return 0.0
        unread = self.loop.time() - self._unread_since if self.flow.write_paused else 0.0
        return max(unread, self.loop.time() - self.since if self.owes else 0.0)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Make room for the connection, or answer 503."""
        super().connection_made(transport)
        if not self._among.admit(self):
            transport.write(BUSY)
            transport.close()

    def data_received(self, data: bytes) -> None:
        """Take the data, and the time from which the client owes what follows."""
        super().data_received(data)
        if self.flow.read_paused and self.conn.their_state is h11.DONE and not self.cycle.response_complete:
            # The next request came before the answer to this one, and what follows it would be kept in memory
            self.cycle.keep_alive = False
        self._take_time()

    def on_response_complete(self) -> None:
        """Take the time from which the client owes the next request."""
        super().on_response_complete()
        self._take_time()

    def pause_writing(self) -> None:
        """Take the time from which the client reads nothing."""
        super().pause_writing()
        self._unread_since = self.loop.time()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """Hand the connection to the WebSocket protocol."""
        super().handle_websocket_upgrade(event)
        if not getattr(self.transport.get_protocol(), "handshake_initiated", True):
            # A POST, or too many headers: it takes them for no handshake, and would wait for ever
            self.send_400_response("Invalid WebSocket handshake.")

    def _take_time(self) -> None:
        owed = (self.cycle, self.conn.their_state)
        if owed != self._owed:
            self._owed, self.since = owed, self.loop.time()
