"""A proxy before a Prefect server that is busy: every request is told to come again a few times."""

import re
import socket
import threading
from collections import Counter
from contextlib import suppress
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Any, Self
from urllib.parse import urlsplit

# Prefect's own 503 names no time, and its client then waits for up to minutes; a test has none.
REFUSAL = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 0\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
LENGTH = re.compile(rb"(?im)^content-length: *(\d+)")
WEBSOCKET = re.compile(rb"(?im)^upgrade: *websocket")


class BusyServer(ThreadingTCPServer):
    """Passes on to a server what it has refused `times` times; `refused` counts by method and path."""

    daemon_threads = True

    def __init__(self, api: str, times: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        parts = urlsplit(api)
        self.target = (parts.hostname or "", parts.port or 80)
        self.url = f"http://127.0.0.1:{self.server_address[1]}{parts.path}"
        self.refused: Counter[str] = Counter()
        self._times, self._lock = times, threading.Lock()
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()

    def refuses(self, request: str) -> bool:
        """Whether a request is refused once more."""
        with self._lock:
            if self.refused[request] >= self._times:
                return False
            self.refused[request] += 1
            return True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a worker that ends breaks its connections."""


class _Handler(StreamRequestHandler):
    """One request of a connection, which then ends."""

    server: BusyServer

    def handle(self) -> None:
        if not (head := self._head()):
            return
        length = LENGTH.search(head)
        body = self.rfile.read(int(length[1])) if length else b""
        request = head.partition(b" HTTP/")[0].decode("latin-1")
        if not WEBSOCKET.search(head) and self.server.refuses(request):
            self.wfile.write(REFUSAL)
            return
        with socket.create_connection(self.server.target) as upstream:
            upstream.sendall(re.sub(rb"(?im)^connection: keep-alive", b"Connection: close", head) + body)
            back = threading.Thread(target=_copy, args=(upstream, self.connection), daemon=True)
            back.start()
            _copy(self.connection, upstream)
            back.join()

    def _head(self) -> bytes:
        head = b""
        while not head.endswith(b"\r\n\r\n") and (line := self.rfile.readline()):
            head += line
        return head


def _copy(source: socket.socket, to: socket.socket) -> None:
    with suppress(OSError):
        while piece := source.recv(65536):
            to.sendall(piece)
    with suppress(OSError):
        to.shutdown(socket.SHUT_WR)
