"""Servers of this machine: their database, deployments and pages."""

import os
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import psutil
import pytest

from evalake.core.errors import UsageError
from evalake.server.local.deployment import require_suites
from evalake.server.local.server import is_migrated, template, usual_database
from evalake.server.processes import listen
from tests.attacks.hostile import markers, write
from tests.integration.cli.command import ROOT

# The server of one command, as real processes: from the template, behind a password, gone when its command is gone.

# A command that says where its server is and which process it is, then waits to be killed.
COMMAND = """
import os, signal
from evalake.cli.terminal import prepare
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


@pytest.fixture
def command(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    """A command with a temporary server, on a machine without template or home, in a folder of other people's files."""
    usual = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    places = {"PREFECT_HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    words, environment = [sys.executable, "-P", "-c", COMMAND], {**usual, **places, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(words, env=environment, cwd=write(tmp_path), stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def test_it_lives_and_dies_with_its_command_and_imports_nothing_from_its_folder(
    command: "subprocess.Popen[str]", tmp_path: Path
) -> None:
    """A migration puts the working directory before all modules: the server's is another, in which nothing lies."""
    home = tmp_path / "home"
    assert command.stdout is not None
    url, process, password = command.stdout.readline().split()
    server = psutil.Process(int(process))
    assert httpx.post(f"{url}/flows/filter", json={}, trust_env=False, timeout=600).status_code == 401
    user, secret = password.split(":", 1)
    assert httpx.post(f"{url}/flows/filter", json={}, auth=(user, secret), trust_env=False, timeout=600).json() == []
    assert secret not in " ".join(server.cmdline())
    assert server.cwd() == "/"
    assert markers(tmp_path / "hostile") == []
    assert list((tmp_path / "cache").rglob("prefect-*.db"))  # the template, which it makes, and migrates, first
    with closing(sqlite3.connect(home / "prefect.db")) as database:
        (blocks,) = database.execute("SELECT count(*) FROM block_type").fetchone()
    assert blocks > 0  # the template has them: a Secret block can be kept
    assert (home / "prefect.db").stat().st_mode & 0o077 == 0

    command.send_signal(signal.SIGKILL)
    command.wait()
    server.wait(timeout=600)


# A new database is a copy of one that is migrated already; one that is there stays, whatever it is.


def test_a_missing_one_is_made_for_its_user_alone(tmp_path: Path) -> None:
    database = tmp_path / "home" / "prefect.db"
    assert is_migrated(database)
    assert stat.S_IMODE(database.stat().st_mode) == 0o600
    assert [path.name for path in database.parent.iterdir()] == ["prefect.db"]
    assert is_migrated(database)


def test_a_template_that_another_user_has_made_is_not_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cache" / "evalake").mkdir(parents=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    template().write_text("with deployments of theirs")
    monkeypatch.setattr(os, "geteuid", lambda: template().stat().st_uid + 1)
    assert not is_migrated(tmp_path / "prefect.db")
    assert not (tmp_path / "prefect.db").exists()


def test_what_is_no_database_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "prefect.db").write_text("mine")
    assert not is_migrated(tmp_path / "prefect.db")
    assert (tmp_path / "prefect.db").read_text() == "mine"


def test_a_server_starts_soonest_with_the_database_of_its_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "home"))
    assert usual_database() == tmp_path / "home" / "prefect.db"
    assert is_migrated(tmp_path / "home" / "prefect.db")
    assert (tmp_path / "home" / "prefect.db").is_file()


@pytest.mark.parametrize(
    "name", ["SERVER_DATABASE_CONNECTION_URL", "API_DATABASE_CONNECTION_URL", "SERVER_DATABASE_NAME"]
)
def test_a_database_elsewhere_is_left_to_prefect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path))
    with monkeypatch.context() as patched:
        patched.setenv(f"PREFECT_{name}", "postgresql+asyncpg://db/prefect")
        assert usual_database() is None
    (tmp_path / "profiles.toml").write_text(f'active = "team"\n[profiles.team]\nPREFECT_{name} = "elsewhere"\n')
    assert usual_database() is None


# What deploys a project beside the server's start; tests/e2e/test_up.py has what it deploys.

DECLARED = """
deployments:
- {name: a, work_pool: {name: nights}}
- {name: b, work_pool: {name: days}}
- {name: c, work_pool: {name: nights}}
"""


@pytest.mark.parametrize("parameters", ["{suite: comand_guard}", "{suites: [command_guard, comand_guard]}"])
def test_a_suite_that_there_is_not_is_told_with_its_deployment(tmp_path: Path, parameters: str) -> None:
    declared = f"deployments:\n- {{name: weekly, parameters: {{}}}}\n- {{name: nightly, parameters: {parameters}}}\n"
    (tmp_path / "prefect.yaml").write_text(declared)
    told = r"the deployment nightly names the unknown suite 'comand_guard': choose one of command_guard, "
    with pytest.raises(UsageError, match=told):
        require_suites(tmp_path)
    (tmp_path / "prefect.yaml").write_text(declared.replace("comand", "command"))
    require_suites(tmp_path)
    require_suites(ROOT)


# The pages of `evalake up`: why they do not start is one line; tests/e2e/test_up.py has what they show.


def test_a_mistake_in_the_configuration_is_one_line(tmp_path: Path) -> None:
    with listen("127.0.0.1", 0) as pages, listen("127.0.0.1", 0) as prefect:
        numbers = [pages.fileno(), prefect.fileno()]
        words = ["evalake.server.local.supervisor", "pages", *map(str, numbers), str(tmp_path / "lake")]
        with subprocess.Popen(
            [sys.executable, "-m", *words],
            cwd=ROOT,
            env={**os.environ, "EVALAKE_CONFIG": str(tmp_path / "missing.toml")},
            stdin=subprocess.PIPE,  # which ends with this process
            stderr=subprocess.PIPE,
            pass_fds=numbers,
            text=True,
            start_new_session=True,
        ) as process:
            code, said = process.wait(600), process.stderr.read() if process.stderr else ""
    assert code == 1
    assert said.startswith("evalake: ")
    assert "missing.toml" in said
    assert said.count("\n") == 1
