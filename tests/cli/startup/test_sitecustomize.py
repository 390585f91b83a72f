"""Prefect takes no settings from the folder that a command runs in."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import ROOT
from tests.cli.hostile import markers

SET_UP_LOGGING = "from prefect.logging.configuration import setup_logging; setup_logging()"


def python(code: str, folder: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    subprocess.run(
        [sys.executable, "-P", "-c", code],
        cwd=folder,
        env={**environment, "PYTHONPATH": str(ROOT), "PREFECT_HOME": str(folder.parent / "home")},
        check=True,
        timeout=300,
    )


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
    python(f"from cli.environment import prepare; prepare(); {SET_UP_LOGGING}", folder)
