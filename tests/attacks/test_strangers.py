"""Strangers who hold hundreds of connections keep no user with a token from being answered."""

import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil
import pytest

from tests.e2e.processes import PLAIN, wait_until
from tests.integration.cli.command import ROOT

MANY = 700
REQUESTS = 44
LARGE = "/reference/swagger-ui-bundle.js"  # the largest file that is served without a token
ATTACKS = {
    "hardly reads": f"GET {LARGE} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n",
    "is refused and stays": "GET /api/v1/runs HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n",
    "sends half a request": "GET /api/v1/runs HTTP/1.1\r\nhost: 127.0.0.1\r\n",
    "sends nothing": "",
}
# Opens so many connections, sends the same on each, reads a byte of each now and then, and opens closed ones again.
ATTACKER = """
import resource, socket, sys, time
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
port, many, sent = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3].encode()
there = []
while True:
    while len(there) < many:
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        try:
            client.connect(("127.0.0.1", port))
            client.sendall(sent)
            client.setblocking(False)
        except OSError:
            client.close()
            continue
        there.append(client)
    print("full", flush=True)
    time.sleep(1)
    for client in there[:]:
        try:
            is_closed = client.recv(1) == b""
        except BlockingIOError:
            continue
        except OSError:
            is_closed = True
        if is_closed:
            there.remove(client)
            client.close()
"""


@dataclass(frozen=True)
class Viewer:
    """A process of `evalake view`."""

    process: "subprocess.Popen[str]"
    url: httpx.URL
    token: str
    log: Path

    def ask(self) -> int:
        """Ask for the runs, on a connection of its own; returns the status."""
        allowed = {"authorization": f"Bearer {self.token}"}
        return httpx.get(self.url.join("/api/v1/runs"), headers=allowed, timeout=600, verify=PLAIN).status_code


@pytest.fixture(scope="module")
def viewer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Viewer]:
    log = (folder := tmp_path_factory.mktemp("viewer")) / "log"
    command = [sys.executable, "-m", "evalake.cli", "view", "--lake", str(folder / "lake"), "--port", "0"]
    with log.open("w") as file, subprocess.Popen(command, cwd=ROOT, stderr=file, text=True) as process:
        found = wait_until(lambda: re.search(r"(http://\S+)#token=(\S+)", log.read_text()), "the start of the viewer")
        yield Viewer(process, httpx.URL(found[1]), found[2], log)
        process.terminate()
    assert "Traceback" not in log.read_text()
    assert "ERROR" not in log.read_text()


@contextmanager
def attacked(port: int, sent: str) -> Iterator[None]:
    """Have another process hold many connections meanwhile."""
    command = [sys.executable, "-c", ATTACKER, str(port), str(MANY), sent]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as attacker:
        try:
            assert attacker.stdout is not None
            assert attacker.stdout.readline() == "full\n"
            threading.Thread(target=attacker.stdout.read, daemon=True).start()
            yield
            assert attacker.poll() is None
        finally:
            attacker.kill()


@pytest.mark.parametrize("sent", ATTACKS.values(), ids=ATTACKS)
def test_users_are_answered_while_strangers_hold_many_connections(viewer: Viewer, sent: str) -> None:
    assert viewer.ask() == 200
    with attacked(viewer.url.port or 0, sent):
        assert [viewer.ask() for _ in range(REQUESTS)] == [200] * REQUESTS
        held = psutil.Process(viewer.process.pid).net_connections("tcp")
        assert len(held) <= 501  # [service] connections, and the one that listens
