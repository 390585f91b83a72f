"""`evalake prefect` in a folder full of other people's files, and the server that it starts."""

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import httpx

from evalake.server.processes import listen
from tests.attacks.hostile import markers
from tests.e2e.processes import PLAIN, wait_until
from tests.integration.cli.command import evalake_here
from tests.servers.ports import free_port


def test_prefects_own_command_runs_it_and_ours_around_it_does_not(hostile: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    place = {"PREFECT_HOME": str(hostile.parent / "home"), "PREFECT_API_URL": "http://127.0.0.1:9/api"}
    worker = ("worker", "start", "--pool", "evalake")  # ends at once, for there is no server

    def start(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=hostile, env={**environment, **place}, capture_output=True, text=True, timeout=600
        )

    binaries = Path(sys.executable).parent
    start(str(binaries / "evalake"), "prefect", *worker)
    assert markers(hostile) == []
    start(str(binaries / "prefect"), *worker)
    assert markers(hostile) != []


def test_a_server_has_a_password_and_admits_no_other_origin_also_where_its_address_is_named(tmp_path: Path) -> None:
    address = f"http://127.0.0.1:{(port := free_port())}/api"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    named = {"PREFECT_HOME": str(tmp_path), "PREFECT_API_URL": address}
    command = [str(Path(sys.executable).parent / "evalake"), "prefect", "server", "start", "--port", str(port)]
    with (tmp_path / "log").open("w+") as log:
        server = subprocess.Popen(command, env={**environment, **named}, stdout=log, stderr=log, cwd=tmp_path)
        try:
            wait_until(lambda: _answers(address), "the server to answer")
            page = {"origin": "https://elsewhere.example"}
            asked = f"{address}/block_documents/filter"
            stranger = httpx.post(asked, json={"include_secrets": True}, headers=page, timeout=600)
            log.seek(0)
            said = log.read()
            password = said.partition("password ")[2].partition(";")[0]
            owner = httpx.post(asked, json={}, auth=("evalake", password), headers=page, timeout=600)
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(600)
    assert "asks for user" in said
    assert (stranger.status_code, owner.status_code) == (401, 200)
    assert "access-control-allow-origin" not in {*stranger.headers, *owner.headers}
    database = tmp_path / "prefect.db"  # a copy of the migrated template; one that Prefect makes can be read by anybody
    assert stat.S_IMODE(database.stat().st_mode) == 0o600


def test_a_server_that_cannot_have_its_port_or_is_asked_for_more_is_refused(tmp_path: Path) -> None:
    with listen("127.0.0.1", 0) as taken:
        port = str(taken.getsockname()[1])
        said = evalake_here("prefect", "server", "start", "--port", port, folder=tmp_path)
        assert (said.returncode, f"cannot listen on 127.0.0.1, port {port}" in said.stderr) == (2, True), said.stderr
    for option in ("--background", "--workers=2", "-b"):
        said = evalake_here("prefect", "server", "start", option, folder=tmp_path)
        assert (said.returncode, "`evalake up`" in said.stderr, option in said.stderr) == (2, True, True), said.stderr


def _answers(address: str) -> bool:
    try:
        return httpx.get(f"{address}/health", verify=PLAIN).is_success
    except httpx.HTTPError:
        return False
