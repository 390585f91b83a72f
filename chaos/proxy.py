"""A proxy in front of an object store that answers wrongly, late, by halves or not at all: seeded.

`python -m chaos.proxy TARGET SEED SHARE` prints its port, and at the end of its input how often it injected what. It is
a process of its own, as some functions of the engine hold the interpreter's lock while they wait for an answer.
"""

import http.client
import json
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

LATE_SECONDS = 0.3
_HOP = {"connection", "transfer-encoding", "content-length", "keep-alive", "server", "date"}

LOST_REPLY = "reply lost after a successful conditional put"
REFUSALS: Mapping[str, int] = {"500": 500, "503 slow down": 503}
COMMITS = 5  # times the share of other requests
HALF, SILENT, LATE = "half an answer", "connection closed without an answer", "late answer"
_OF_READS = (*REFUSALS, HALF, SILENT, LATE)


class FaultyStore(ThreadingHTTPServer):
    """A server that hands requests on to `target`, with a fault in a share of them; `injected` counts each fault."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, target: str, seed: int, share: float) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        parts = urlsplit(target)
        self.target = (parts.hostname or "", parts.port or 80)
        self.injected: Counter[str] = Counter()
        self.share = share
        self._random = random.Random(seed)
        self._lock = threading.Lock()

    def draw(self, is_conditional_put: bool) -> str | None:
        """Draw the fault of the next request; None for most. Commits, of which there are few, are hit more often."""
        kinds = (*REFUSALS, SILENT, LOST_REPLY, LOST_REPLY, LOST_REPLY) if is_conditional_put else _OF_READS
        with self._lock:
            if self._random.random() >= self.share * (COMMITS if is_conditional_put else 1):
                return None
            fault = self._random.choice(kinds)
            self.injected[fault] += 1
            return fault

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing: connections break here on purpose."""


@dataclass
class Proxy:
    """The URL of a proxy, and how often it injected each fault, once it has ended."""

    url: str
    injected: Mapping[str, int] = field(default_factory=dict)


@contextmanager
def faulty_store(target: str, seed: int, share: float) -> Iterator[Proxy]:
    """Start a proxy in front of `target` in a process of its own, and end it afterwards."""
    command = [sys.executable, "-m", "chaos.proxy", target, str(seed), str(share)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        proxy = Proxy(f"http://127.0.0.1:{int(process.stdout.readline())}")
        try:
            yield proxy
        finally:
            told, _ = process.communicate()
            proxy.injected = json.loads(told)


def main(target: str, seed: str, share: str) -> None:
    """Serve until standard input ends, then print the counts of faults."""
    server = FaultyStore(target, int(seed), float(share))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    sys.stdin.read()
    print(json.dumps(server.injected))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FaultyStore
    timeout = 60

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        is_conditional = self.command == "PUT" and "if-none-match" in self.headers
        fault = self.server.draw(is_conditional)
        if fault is not None and fault in REFUSALS:
            self._answer(REFUSALS[fault], {}, b"<Error><Code>SlowDown</Code></Error>")
        elif fault == SILENT:
            self.close_connection = True
        else:
            status, headers, content = self._forward(body)
            if fault == LOST_REPLY:
                self.close_connection = True  # the request is carried out, but its reply is lost
                return
            if fault == LATE:
                time.sleep(LATE_SECONDS)
            self._answer(status, headers, content, half=fault == HALF)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _handle  # noqa: N815 - the names are the base class's

    def _forward(self, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        connection = http.client.HTTPConnection(*self.server.target, timeout=60)
        try:
            headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP}
            connection.request(self.command, self.path, body, headers)
            answer = connection.getresponse()
            content = answer.read()
            kept = {name: value for name, value in answer.getheaders() if name.lower() not in _HOP}
            if self.command == "HEAD":
                kept["Content-Length"] = answer.getheader("content-length") or "0"
            return answer.status, kept, content
        finally:
            connection.close()

    def _answer(self, status: int, headers: Mapping[str, str], content: bytes, *, half: bool = False) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if self.command != "HEAD":
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if half and content:
            self.wfile.write(content[: len(content) // 2])
            self.close_connection = True
        elif self.command != "HEAD":
            self.wfile.write(content)


if __name__ == "__main__":
    main(*sys.argv[1:])
