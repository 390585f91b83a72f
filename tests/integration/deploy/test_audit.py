"""The audit of the lock, against a local server that speaks OSV's protocol."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.integration.deploy.test_parts import RUNTIME, wanted_here

AUDIT = Path(__file__).resolve().parents[3] / "deploy" / "audit.py"
FLAW = "PYSEC-2026-1"


class Osv(ThreadingHTTPServer):
    """Knows one flaw, of the package that a test names, and keeps which packages it was asked about."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.flawed = ""
        self.broken = False
        self.asked: set[str] = set()


class _Handler(BaseHTTPRequestHandler):
    server: Osv

    def do_POST(self) -> None:
        query = json.loads(self.rfile.read(int(self.headers["content-length"])))
        package = query["package"]
        self.server.asked.add(package["name"])
        ranges = [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "99.1"}]}]
        flaw = {"id": FLAW, "summary": "a flaw", "affected": [{"package": package, "ranges": ranges}]}
        body = json.dumps({"vulns": [flaw]} if package["name"] == self.server.flawed else {}).encode()
        self.send_response(500 if self.server.broken else 200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""


@pytest.fixture
def osv() -> Iterator[Osv]:
    with Osv() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def audited(address: str, home: Path) -> "subprocess.CompletedProcess[str]":
    # Its cache lies in the home
    environment = {"EVALAKE_OSV_URL": address, "HOME": str(home), "NO_PROXY": "127.0.0.1", "PATH": "/usr/bin:/bin"}
    return subprocess.run([sys.executable, AUDIT], env=environment, capture_output=True, text=True, check=False)


def test_every_package_of_the_lock_is_asked_about(osv: Osv, tmp_path: Path) -> None:
    done = audited(f"http://127.0.0.1:{osv.server_port}", tmp_path)
    assert done.returncode == 0, done.stderr
    assert osv.asked == {requirement.name for requirement in wanted_here(RUNTIME)}
    assert done.stdout.endswith(f"{len(osv.asked)} packages: no vulnerability is known\n")


def test_a_known_vulnerability_is_named_with_what_mends_it(osv: Osv, tmp_path: Path) -> None:
    osv.flawed = "prefect"
    done = audited(f"http://127.0.0.1:{osv.server_port}", tmp_path)
    assert done.returncode == 1
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("prefect ")]
    assert line.endswith(f": {FLAW}, mended in 99.1")


def test_where_it_cannot_ask_it_never_says_that_nothing_is_known_to_be_wrong(osv: Osv, tmp_path: Path) -> None:
    osv.broken = True
    refused = "http://127.0.0.1:1"
    for address in (f"http://127.0.0.1:{osv.server_port}", refused):
        done = audited(address, tmp_path)
        assert done.returncode == 3
        assert "no vulnerability" not in done.stdout
        assert done.stderr.startswith("audit: nothing is known, for OSV could not be asked: ")
        assert "Traceback" not in done.stderr
