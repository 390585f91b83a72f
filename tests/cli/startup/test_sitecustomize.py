"""Prefect takes no settings from the folder that a command runs in."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import ROOT
from tests.cli.hostile import markers

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


def test_what_is_imported_is_not_looked_through_for_garbage_again_and_again(tmp_path: Path) -> None:
    """Neither in the command nor in what it starts, such as a Prefect server, a worker or a flow run."""
    (folder := tmp_path / "folder").mkdir()
    tell = "import gc; print(gc.get_threshold()[0] >= 50_000, flush=True)"
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {tell!r}], check=True)"
    assert python(f"from cli.environment import prepare; prepare(); {tell}; {child}", folder) == "True\nTrue\n"
