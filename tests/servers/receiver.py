"""An HTTP server that keeps what is posted to it, as the receiver of notifications."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


class Receiver:
    """Keeps every JSON body in `told`, in the order in which they come."""

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook?token=a-token-nobody-may-see"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def bodies(self, subject: str) -> list[str]:
        """The bodies told under a subject."""
        return [each["body"] for each in list(self.told) if each["subject"] == subject]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        told = self.told

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                told.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
                self.send_response(204)
                self.end_headers()

            def log_message(self, format: str, *arguments: object) -> None:
                """Say nothing."""

        return Handler
