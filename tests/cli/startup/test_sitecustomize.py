"""Prefect takes no settings from the folder that a command runs in."""

import os
import subprocess
import sys
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
from tasks.runtime.prefect_internals import create_database
create_database(Path({str(tmp_path / "prefect.db")!r}))
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
            answers = list(clients.map(create, range(200)))
        assert set(answers) == {201}
        assert "database is locked" not in stack.server_log()


def test_a_flow_run_does_not_wait_for_the_thread_of_its_heartbeats(tmp_path: Path) -> None:
    look = "from prefect import flow_engine; from inspect import signature; heartbeats = flow_engine._send_heartbeats; "
    tell = "print(signature(heartbeats).parameters['join_on_exit'].default)"
    (folder := tmp_path / "folder").mkdir()
    assert python(f"{look}{tell}", folder) == "True\n", "as Prefect has it"
    assert python(f"from cli.environment import prepare; prepare(); {look}{tell}", folder) == "False\n"


def test_a_workers_flow_runs_are_copies_unless_another_command_is_configured(tmp_path: Path) -> None:
    """Holds what spares each flow run two processes that import Prefect; tests/cli/warm has how the copies are."""
    (folder := tmp_path / "folder").mkdir()
    code = """
import shlex
from uuid import uuid4
from cli.environment import prepare
prepare()
from prefect.client.schemas.objects import FlowRun
from prefect.workers.process import ProcessJobConfiguration
for command in (None, "other command"):
    configuration = ProcessJobConfiguration(command=command)
    configuration.prepare_for_flow_run(FlowRun(flow_id=uuid4()))
    assert configuration._command_configured
    print(command or shlex.split(configuration.command)[1:4], configuration.command == command)
"""
    assert python(code, folder) == "['-P', '-m', 'cli.warm.flow_run'] False\nother command True\n"


def test_the_names_of_time_zones_are_read_once(tmp_path: Path) -> None:
    (folder := tmp_path / "folder").mkdir()
    code = """
import os
from cli.environment import prepare
prepare()
from prefect.client.schemas.schedules import CronSchedule
CronSchedule(cron="0 3 * * *", timezone="Europe/Berlin")
os.walk = None  # by which they are found
for timezone in ("UTC", "Asia/Tokyo"):
    print(CronSchedule(cron="0 3 * * *", timezone=timezone).timezone)
try:
    CronSchedule(cron="0 3 * * *", timezone="Europe/Nowhere")
except ValueError as error:
    print("Invalid timezone" in str(error))
"""
    assert python(code, folder) == "UTC\nAsia/Tokyo\nTrue\n"


def test_what_is_imported_is_not_looked_through_for_garbage_again_and_again(tmp_path: Path) -> None:
    """Neither in the command nor in what it starts, such as a Prefect server, a worker or a flow run."""
    (folder := tmp_path / "folder").mkdir()
    tell = "import gc; print(gc.get_threshold()[0] >= 50_000, flush=True)"
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {tell!r}], check=True)"
    assert python(f"from cli.environment import prepare; prepare(); {tell}; {child}", folder) == "True\nTrue\n"


def test_certificates_are_read_once_and_again_where_they_have_changed(tmp_path: Path) -> None:
    (folder := tmp_path / "folder").mkdir()
    code = """
import os, ssl, certifi
from pathlib import Path
from cli.environment import prepare
prepare()
read = []
really = ssl.create_default_context
def create_default_context(**named):
    if named.get("cafile", "mine.pem") == "mine.pem":  # of what these clients ask for
        read.append(named)
    return really(**named)
ssl.create_default_context = create_default_context
from prefect.client.orchestration import get_client
from prefect.settings import PREFECT_API_SSL_CERT_FILE, PREFECT_API_TLS_INSECURE_SKIP_VERIFY, temporary_settings
mine = Path("mine.pem")
mine.write_text(Path(certifi.where()).read_text())
with temporary_settings({PREFECT_API_SSL_CERT_FILE: str(mine)}):
    for _ in range(3):
        get_client(sync_client=True), get_client()
    print(read)
    os.utime(mine, (1, 1))
    get_client()
with temporary_settings({PREFECT_API_TLS_INSECURE_SKIP_VERIFY: True}):
    get_client(), get_client()
print(read[1:])
"""
    assert python(code, folder) == "[{'cafile': 'mine.pem'}]\n[{'cafile': 'mine.pem'}, {}, {}]\n"
