"""The Prefect server beside a service answers to nobody without its password, whichever page asks."""

import os
import subprocess
import sys
from pathlib import Path

import httpx
import psutil

from tests.e2e.processes import ROOT

EVIL = "https://evil.example"


def test_a_page_of_another_site_reads_no_secrets_of_the_server_beside_a_service(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    environment |= {"PREFECT_HOME": str(tmp_path / "home"), "PYTHONPATH": str(ROOT)}
    command = [
        *(sys.executable, "-m", "evalake.cli", "serve", "--port", "0"),
        *("--no-token", "--lake", str(tmp_path / "lake")),
    ]
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) as service:
        try:
            assert service.stderr is not None
            said = service.stderr.readline()
            assert "evalake serves" in said
            status = httpx.get(f"{said.split()[2]}/api/v1/status", timeout=30).json()
            answers = [answer for port in _ports(service.pid) if (answer := _ask(port)) is not None]
        finally:
            service.terminate()
            service.wait(60)
    assert status["prefect_url"] is None  # pages that let nobody in, and end with the service, are linked nowhere
    assert 401 in [answer.status_code for answer in answers]
    assert all(answer.status_code in (401, 403, 404, 405) for answer in answers)
    assert not [answer for answer in answers if answer.headers.get("access-control-allow-origin") in ("*", EVIL)]


def _ports(service: int) -> list[int]:
    """The ports on which a process or any that it started listens."""
    family = [psutil.Process(service), *psutil.Process(service).children(recursive=True)]
    sockets = [connection for process in family for connection in process.net_connections("tcp")]
    return sorted({each.laddr.port for each in sockets if each.status == psutil.CONN_LISTEN})


def _ask(port: int) -> httpx.Response | None:
    """What a port answers a page of another site; None where it speaks no HTTP."""
    try:
        return httpx.post(
            f"http://127.0.0.1:{port}/api/block_documents/filter",
            json={"include_secrets": True},
            headers={"origin": EVIL},
            timeout=30,
        )
    except httpx.RemoteProtocolError:
        return None
