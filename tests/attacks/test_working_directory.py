"""Prefect takes no settings from the folder that a command runs in, nor does a process that the command starts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from evalake.core.prefect_settings import PROFILES
from tests.attacks.hostile import markers, write
from tests.integration.cli.command import ROOT

SET_UP_LOGGING = "from prefect.logging.configuration import setup_logging; setup_logging()"
PREPARE = "from evalake.cli.terminal import prepare; prepare()"
# Settings are made again for each block of `temporary_settings`
READ_AGAIN = """
from prefect.settings import PREFECT_LOGGING_LEVEL, get_current_settings, temporary_settings
with temporary_settings({PREFECT_LOGGING_LEVEL: "ERROR"}):
    assert get_current_settings().logging.config_path.parent == get_current_settings().home, get_current_settings()
"""
FILES = {".env": "dotenv", "prefect.toml": "prefect", "pyproject.toml": "pyproject"}


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder whose files name a logging configuration that runs a command, in every way that Prefect knows."""
    return write(tmp_path)


def python(code: str, folder: Path, **more: str) -> str:
    """Run code in a folder, as a process that must end well; what it prints."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        cwd=folder,
        env={**environment, "PYTHONPATH": str(ROOT), "PREFECT_HOME": str(folder.parent / "home"), **more},
        check=True,
        timeout=600,
        stdout=subprocess.PIPE,
        text=True,
    )
    return done.stdout


@pytest.mark.parametrize("file", FILES)
def test_prefect_by_itself_runs_what_the_folder_says(hostile: Path, file: str) -> None:
    """Holds that the attack of these tests is one."""
    for other in FILES.keys() - {file}:
        (hostile / other).unlink()
    python(SET_UP_LOGGING, hostile)
    assert markers(hostile) == [f"{FILES[file]}.marker"]


def test_the_command_does_not(hostile: Path) -> None:
    python(f"{PREPARE}; {SET_UP_LOGGING}\n{READ_AGAIN}", hostile)
    assert markers(hostile) == []


@pytest.mark.parametrize("package", ["server", "flows"])
def test_nor_does_a_process_that_the_command_starts(hostile: Path, package: str) -> None:
    """Each is a module of `server`, or a flow run, whose flow is a module of `flows`."""
    profiles = {PROFILES: str(hostile.parent / "profiles.toml")}  # as it has it from the command
    python(f"import evalake.{package}; {SET_UP_LOGGING}\n{READ_AGAIN}", hostile, **profiles)
    assert markers(hostile) == []


def test_a_flow_closes_the_folder_also_where_prefect_was_imported_before(hostile: Path) -> None:
    code = f"import os, prefect; os.chdir({str(hostile)!r}); import evalake.flows; {SET_UP_LOGGING}\n{READ_AGAIN}"
    (elsewhere := hostile.parent / "empty").mkdir()
    python(code, elsewhere, **{PROFILES: str(elsewhere / "profiles.toml")})
    assert markers(hostile) == []


def test_the_profile_that_the_user_chose_counts(hostile: Path) -> None:
    (home := hostile.parent / "home").mkdir()
    (home / "profiles.toml").write_text('active = "mine"\n[profiles.mine]\nPREFECT_API_URL = "http://mine:4200/api"\n')
    show = "from prefect.settings import PREFECT_API_URL; print(PREFECT_API_URL.value())"
    assert python(f"{PREPARE}; {show}", hostile) == "http://mine:4200/api\n"


def test_settings_of_other_programs_are_read_as_ever(tmp_path: Path) -> None:
    (folder := tmp_path / "folder").mkdir()
    (folder / ".env").write_text("COLOUR=blue\n")
    code = f"""
{PREPARE}
import prefect
from pydantic_settings import BaseSettings
class Mine(BaseSettings, env_file=".env"):
    colour: str
print(Mine().colour)
"""
    assert python(code, folder) == "blue\n"


def test_files_that_cannot_be_read_hinder_no_command(tmp_path: Path) -> None:
    (folder := tmp_path / "folder").mkdir()
    for name in FILES:
        (folder / name).write_bytes(b"\xff\xfe\x00 = no text")
    assert python(f"{PREPARE}; {SET_UP_LOGGING}; print('done')", folder) == "done\n"


def test_a_database_that_is_named_from_the_folder_is_refused_rather_than_made_elsewhere(tmp_path: Path) -> None:
    url = "sqlite+aiosqlite:///./mine.db"
    command = [str(Path(sys.executable).parent / "evalake"), "prefect", "server", "start"]
    environment = {**os.environ, "PREFECT_HOME": str(tmp_path), "PREFECT_SERVER_DATABASE_CONNECTION_URL": url}
    refused = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600)
    assert refused.returncode == 2
    assert "PREFECT_SERVER_DATABASE_CONNECTION_URL" in refused.stderr
    assert url in refused.stderr
