"""A server that answers every request with what it was told, and keeps what was sent: method, path, headers, body."""

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Sent:
    """One request; header names in lower case, the body as JSON says it."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any


class Recorder:
    """The server's answer, to be set, and what came in so far."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.status = 200
        self.body = b"{}"
        self.headers: Mapping[str, str] = {}
        self.pause = 0.0
        self.sent: list[Sent] = []

    def answer(
        self, body: Any, status: int = 200, headers: Mapping[str, str] | None = None, pause: float = 0.0
    ) -> None:
        """Answer so from now on: bytes as they are, anything else as JSON; with a pause of seconds after each event."""
        self.body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.status, self.headers, self.pause = status, headers or {}, pause


@contextmanager
def recorder() -> Iterator[Recorder]:
    """The server on a free port, on a thread of its own."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            # As one: a client that has read enough lets the test set the next answer before this one is written
            status, body, extra = kept.status, kept.body, kept.headers
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            kept.sent.append(Sent("POST", self.path, headers, json.loads(raw)))
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", **extra}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            for event in body.split(b"\n\n") if kept.pause else ():
                self.wfile.write(event + b"\n\n")
                time.sleep(kept.pause)
            if not kept.pause:
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        kept = Recorder(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, name="recorder")
        thread.start()
        try:
            yield kept
        finally:
            server.shutdown()
            thread.join()
