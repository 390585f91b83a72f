"""The server of one command, as real processes: from the template, behind a password, gone when its command is gone."""

import os
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import psutil
import pytest

from tests.integration.cli.command import ROOT

# A command that says where its server is and which process it is, then waits to be killed.
COMMAND = """
import os, signal
from evalake.cli.environment import prepare
prepare()
from evalake.server.local.server import TemporaryServer
server = TemporaryServer()
with server.in_use():
    print(os.environ["PREFECT_API_URL"], server.pid, os.environ["PREFECT_API_AUTH_STRING"], flush=True)
    signal.pause()
"""


def test_who_reads_the_messages_of_a_command_does_not_wait_for_its_server_to_end() -> None:
    code = """
import signal
from evalake.server.processes import follow_parent
signal.signal(signal.SIGTERM, lambda *_: None)  # as a server that has still events to keep
follow_parent(600, silently=True)
while True:
    signal.pause()
"""
    words = [sys.executable, "-c", code]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, cwd=ROOT, stdin=pipe, stderr=pipe, text=True, start_new_session=True) as server:
        assert server.stdin is not None
        assert server.stderr is not None
        server.stdin.close()  # as when the command ends
        assert server.stderr.read() == ""
        assert server.poll() is None
        server.kill()


def test_nothing_is_made_for_a_command_that_has_ended_already(tmp_path: Path) -> None:
    """One that was mistyped, say: its server would go on for seconds of processor."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        done = subprocess.run(
            [sys.executable, "-m", "evalake.server.local.server", str(listener.fileno()), "--temporary"],
            cwd=ROOT,
            env={**os.environ, "PREFECT_HOME": str(tmp_path / "home")},
            stdin=subprocess.DEVNULL,
            pass_fds=[listener.fileno()],
            capture_output=True,
            start_new_session=True,
        )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGTERM, b"", b"")
    assert list(tmp_path.rglob("*.db")) == []


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh home of Prefect's."""
    return tmp_path_factory.mktemp("prefect")


@pytest.fixture(scope="module")
def command(home: Path) -> Iterator["subprocess.Popen[str]"]:
    """A command with a temporary server on a fresh home."""
    usual = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    environment = {**usual, "PYTHONPATH": str(ROOT), "PREFECT_HOME": str(home)}
    words = [sys.executable, "-c", COMMAND]
    with subprocess.Popen(words, env=environment, cwd=home, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def test_it_lives_and_dies_with_its_command(command: "subprocess.Popen[str]", home: Path) -> None:
    assert command.stdout is not None
    url, process, password = command.stdout.readline().split()
    server = psutil.Process(int(process))
    assert httpx.post(f"{url}/flows/filter", json={}, trust_env=False, timeout=60).status_code == 401
    user, secret = password.split(":", 1)
    assert httpx.post(f"{url}/flows/filter", json={}, auth=(user, secret), trust_env=False, timeout=60).json() == []
    assert secret not in " ".join(server.cmdline())
    with closing(sqlite3.connect(home / "prefect.db")) as database:
        (blocks,) = database.execute("SELECT count(*) FROM block_type").fetchone()
    assert blocks > 0  # the template has them: a Secret block can be kept
    assert (home / "prefect.db").stat().st_mode & 0o077 == 0

    command.send_signal(signal.SIGKILL)
    command.wait()
    server.wait(timeout=120)
