"""HTTP at the level of bytes: requests that do not arrive in time, and connections above a number, are closed."""

import asyncio
from functools import partial
from typing import Any, cast

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

BUSY = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 0\r\nretry-after: 5\r\n\r\n"

_UNFINISHED = (h11.IDLE, h11.SEND_BODY)  # the client has still to send a request's headers, or its body


def bounded_protocol(request_seconds: float, connections: int) -> type[asyncio.Protocol]:
    """Build the factory of the protocol that uvicorn creates for each connection.

    Args:
        request_seconds: How long the headers of a request may take, then its body, then each part of the answer.
        connections: How many may be open at once.
    """
    made = partial(BoundedProtocol, request_seconds=request_seconds, most_connections=connections)
    return cast(type[asyncio.Protocol], made)


class BoundedProtocol(H11Protocol):
    """Uvicorn's protocol with deadlines and a limit on open connections, which it does not have itself.

    The deadlines are fixed from the start: a client that sends a byte a second gains nothing. Where too many
    connections are open, the one whose request has been unfinished for longest is closed for a new one.
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        request_seconds: float,
        most_connections: int,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._seconds, self._most = request_seconds, most_connections
        self._timed: Any = None  # the h11 state whose deadline runs
        self._deadline: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None
        self.unfinished_since: float | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the deadline of the first request, or answer 503 where there is no room."""
        super().connection_made(transport)
        if len(self.connections) > self._most and not self._make_room():
            transport.write(BUSY)
            transport.close()
            return
        self._time_request()

    def data_received(self, data: bytes) -> None:
        """Take the data, and start the deadline of what has still to come."""
        super().data_received(data)
        if self.flow.read_paused and self.conn.their_state is h11.DONE and not self.cycle.response_complete:
            # The next request came before the answer to this one, and what follows it would be kept in memory
            self.cycle.keep_alive = False
        self._time_request()

    def on_response_complete(self) -> None:
        """Start the deadline of the next request."""
        super().on_response_complete()
        self._time_request()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """Hand the connection to the WebSocket protocol, which has deadlines of its own after the handshake."""
        self._forget()
        _cancel(self._unread)
        super().handle_websocket_upgrade(event)
        if not getattr(self.transport.get_protocol(), "handshake_initiated", True):
            # Such as a POST, or too many headers: it takes them for no handshake, and would wait for ever
            self.send_400_response("Invalid WebSocket handshake.")

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel all deadlines."""
        self._forget()
        _cancel(self._unread)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Start the deadline of a client that does not read its answer."""
        super().pause_writing()
        self._unread = self.loop.call_later(self._seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Cancel the deadline of a client that reads its answer again."""
        super().resume_writing()
        _cancel(self._unread)

    def _time_request(self) -> None:
        """Start the deadline of what the client has to send next, unless it runs already."""
        state = self.conn.their_state
        if state is self._timed or self.transport.is_closing():
            return
        self._forget()
        self._timed = state
        if state in _UNFINISHED and self.transport.get_protocol() is self:
            self.unfinished_since = self.loop.time()
            self._deadline = self.loop.call_later(self._seconds, self.transport.abort)

    def _forget(self) -> None:
        _cancel(self._deadline)
        self._timed = self.unfinished_since = None

    def _make_room(self) -> bool:
        """Close the connection whose request has been unfinished for longest; False where there is none."""
        waiting = [each for each in self.connections if isinstance(each, BoundedProtocol) and each.unfinished_since]
        if not waiting:
            return False
        oldest = min(waiting, key=lambda each: each.unfinished_since or 0.0)
        self.connections.discard(oldest)
        oldest.transport.abort()
        return True


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
