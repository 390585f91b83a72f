"""Prefect takes no settings from the folder that a command runs in."""

import os
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.cli.command import ROOT
from tests.cli.hostile import markers
from tests.e2e.processes import PLAIN, PrefectStack

SET_UP_LOGGING = "from prefect.logging.configuration import setup_logging; setup_logging()"


def python(code: str, folder: Path) -> str:
    """Run code in a folder, as a process that must end well; what it prints."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        cwd=folder,
        env={**environment, "PYTHONPATH": str(ROOT), "PREFECT_HOME": str(folder.parent / "home")},
        check=True,
        timeout=300,
        stdout=subprocess.PIPE,
        text=True,
    )
    return done.stdout


@pytest.mark.parametrize(
    ("file", "marker"), [(".env", "dotenv"), ("prefect.toml", "prefect"), ("pyproject.toml", "pyproject")]
)
def test_prefect_by_itself_runs_what_the_folder_says(hostile: Path, file: str, marker: str) -> None:
    """Holds that the attack of these tests is one."""
    for other in {".env", "prefect.toml", "pyproject.toml"} - {file}:
        (hostile / other).unlink()
    python(SET_UP_LOGGING, hostile)
    assert markers(hostile) == [f"{marker}.marker"]


def test_neither_the_command_nor_what_it_starts_runs_it(hostile: Path) -> None:
    child = f"subprocess.run([sys.executable, '-c', {SET_UP_LOGGING!r}], check=True)"
    python(
        f"import subprocess, sys; from cli.environment import prepare; prepare(); {SET_UP_LOGGING}; {child}", hostile
    )
    assert markers(hostile) == []


def test_files_that_cannot_be_read_hinder_no_command(tmp_path: Path) -> None:
    (folder := tmp_path / "folder").mkdir()
    for name in (".env", "prefect.toml", "pyproject.toml"):
        (folder / name).write_bytes(b"\xff\xfe\x00 = no text")
    printed = python(f"from cli.environment import prepare; prepare(); {SET_UP_LOGGING}; print('done')", folder)
    assert printed == "done\n"


def test_what_a_server_and_a_flow_run_import_is_never_the_folders(tmp_path: Path) -> None:
    """A migration puts `.` before all modules; a flow run the folder, while it imports its flow."""
    (folder := tmp_path / "folder").mkdir()
    for name in ("optional_one", "shadowed"):
        (folder / f"{name}.py").write_text(f"open({str(folder / name)!r} + '.marker', 'w')\n")
    (installed := tmp_path / "installed" / "shadowed").mkdir(parents=True)
    (installed / "__init__.py").write_text("try:\n    import optional_one\nexcept ImportError:\n    pass\nflow = 1\n")
    code = f"""
import sys
sys.path.append({str(installed.parent)!r})
from cli.environment import prepare
prepare()
from prefect.utilities.importtools import import_object
assert import_object("shadowed.flow") == 1
from pathlib import Path
from service.local.database import start_settings
from tasks.runtime.prefect_internals import create_database
database = Path({str(tmp_path / "home" / "prefect.db")!r})
assert start_settings(database), "a copy of the template, which need not be migrated for seconds"
create_database(database)
assert "." not in sys.path
"""
    python(code, folder)
    assert markers(folder) == []


def test_a_flow_run_in_evalake_home_finds_its_flow_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home := tmp_path / "home").mkdir()
    (home / "flows_of_mine.py").write_text("flow = 1\n")
    monkeypatch.setenv("EVALAKE_HOME", str(home))
    load = "from prefect.utilities.importtools import import_object; print(import_object('flows_of_mine.flow'))"
    assert python(f"from cli.environment import prepare; prepare(); {load}", home) == "1\n"


def test_writers_of_a_servers_sqlite_database_wait_for_each_other(tmp_path: Path) -> None:
    """Ten clients of a server that `evalake prefect` has started: by itself it answers many with 503, to come again."""
    with PrefectStack(tmp_path / "stack", {"PREFECT_SERVER_LOG_RETRYABLE_ERRORS": "true"}) as stack:
        flow = stack.post("/flows/", {"name": "flow"})["id"]

        def create(number: int) -> int:
            body = {"flow_id": flow, "name": str(number), "state": {"type": "SCHEDULED", "name": "Scheduled"}}
            return httpx.post(f"{stack.url}/flow_runs/", json=body, timeout=60, verify=PLAIN).status_code

        with ThreadPoolExecutor(10) as clients:
            answers = list(clients.map(create, range(100)))
        assert set(answers) == {201}
        assert "database is locked" not in stack.server_log()


def test_what_is_imported_is_not_looked_through_for_garbage_again_and_again(tmp_path: Path) -> None:
    """Neither in the command nor in what it starts, such as a Prefect server, a worker or a flow run."""
    (folder := tmp_path / "folder").mkdir()
    tell = "import gc; print(gc.get_threshold()[0] >= 50_000, flush=True)"
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {tell!r}], check=True)"
    assert python(f"from cli.environment import prepare; prepare(); {tell}; {child}", folder) == "True\nTrue\n"


HEARTBEATS = """
from inspect import signature
from prefect import flow_engine
print(signature(flow_engine._send_heartbeats).parameters["join_on_exit"].default)
"""
FLOW_RUNS = """
import shlex
from uuid import uuid4
from prefect.client.schemas.objects import FlowRun
from prefect.workers.process import ProcessJobConfiguration
for command in (None, "other command"):
    configuration = ProcessJobConfiguration(command=command)
    configuration.prepare_for_flow_run(FlowRun(flow_id=uuid4()))
    assert configuration._command_configured
    print(command or shlex.split(configuration.command)[1:4], configuration.command == command)
"""
TIME_ZONES = """
import os
from unittest.mock import patch
from prefect.client.schemas.schedules import CronSchedule
CronSchedule(cron="0 3 * * *", timezone="Europe/Berlin")
with patch.object(os, "walk", None):  # by which they are found
    for timezone in ("UTC", "Asia/Tokyo"):
        print(CronSchedule(cron="0 3 * * *", timezone=timezone).timezone)
    try:
        CronSchedule(cron="0 3 * * *", timezone="Europe/Nowhere")
    except ValueError as error:
        print("Invalid timezone" in str(error))
"""
CERTIFICATES = """
import os, ssl, certifi
from pathlib import Path
read = []
really = ssl.create_default_context
def create_default_context(**named):
    if named.get("cafile", "mine.pem") == "mine.pem":  # of what these clients ask for
        read.append(named)
    return really(**named)
ssl.create_default_context = create_default_context
from prefect.client.orchestration import get_client
from prefect.settings import (
    PREFECT_API_SSL_CERT_FILE, PREFECT_API_TLS_INSECURE_SKIP_VERIFY, PREFECT_API_URL, temporary_settings
)
mine = Path("mine.pem")
mine.write_text(Path(certifi.where()).read_text())
named = {PREFECT_API_URL: "http://127.0.0.1:9/api"}  # else a client imports a server
with temporary_settings({**named, PREFECT_API_SSL_CERT_FILE: str(mine)}):
    for _ in range(3):
        get_client(sync_client=True), get_client()
    print(read)
    os.utime(mine, (1, 1))
    get_client()
with temporary_settings({**named, PREFECT_API_TLS_INSECURE_SKIP_VERIFY: True}):
    get_client(), get_client()
print(read[1:])
"""


@pytest.fixture(scope="module")
def as_the_command_has_it(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """What each piece of code prints in a process that is prepared as the command is: in one, for it takes seconds."""
    (folder := tmp_path_factory.mktemp("prepared") / "folder").mkdir()
    apart = "print(end=chr(0))\n"
    # The certificates first: their reading is replaced by the time that Prefect is imported.
    pieces = {"certificates": CERTIFICATES, "heartbeats": HEARTBEATS, "flow runs": FLOW_RUNS, "time zones": TIME_ZONES}
    printed = python(f"from cli.environment import prepare; prepare()\n{apart.join(pieces.values())}", folder)
    return dict(zip(pieces, printed.split("\0"), strict=True))


def test_certificates_are_read_once_and_again_where_they_have_changed(as_the_command_has_it: Mapping[str, str]) -> None:
    once, again = "[{'cafile': 'mine.pem'}]\n", "[{'cafile': 'mine.pem'}, {}, {}]\n"
    assert as_the_command_has_it["certificates"] == once + again


def test_a_flow_run_does_not_wait_for_the_thread_of_its_heartbeats(
    as_the_command_has_it: Mapping[str, str], tmp_path: Path
) -> None:
    (folder := tmp_path / "folder").mkdir()
    assert python(HEARTBEATS, folder) == "True\n", "as Prefect has it"
    assert as_the_command_has_it["heartbeats"] == "False\n"


def test_a_workers_flow_runs_are_copies_unless_another_command_is_configured(
    as_the_command_has_it: Mapping[str, str],
) -> None:
    """Holds what spares each flow run two processes that import Prefect; tests/cli/warm has how the copies are."""
    copies_and_others = "['-P', '-m', 'cli.warm.flow_run'] False\nother command True\n"
    assert as_the_command_has_it["flow runs"] == copies_and_others


def test_the_names_of_time_zones_are_read_once(as_the_command_has_it: Mapping[str, str]) -> None:
    assert as_the_command_has_it["time zones"] == "UTC\nAsia/Tokyo\nTrue\n"
