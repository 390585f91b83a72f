"""`evalake run` where it stands: in a folder of others, and without a folder for Prefect."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.attacks.hostile import markers
from tests.integration.cli.command import evalake, evalake_here


@pytest.mark.e2e
def test_a_run_in_such_a_folder(hostile: Path) -> None:
    """The real command, with a Prefect server of its own."""
    command = [str(Path(sys.executable).parent / "evalake"), "run", "command_guard", "--first", "1"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    done = subprocess.run(
        command,
        cwd=hostile,
        env={**environment, "PREFECT_HOME": str(hostile.parent / "home")},
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr
    assert markers(hostile) == []


def test_without_a_folder_for_prefect_it_is_said_at_once(tmp_path: Path) -> None:
    done = evalake("run", "command_guard", "--limit", "1", "--json", folder=tmp_path, PREFECT_HOME="/dev/null/home")
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("evalake: Prefect cannot write to /dev/null/home (")
    assert not list(tmp_path.glob("lake/*/*.parquet"))


def test_a_dry_run_needs_no_key(tmp_path: Path) -> None:
    words = ("run", "command_guard", "--models", "openai/gpt-4o-mini", "--limit", "8")
    done = evalake_here(*words, "--dry-run", folder=tmp_path, OPENAI_API_KEY="")
    assert (done.returncode, "0 of 8 in the ledger, 8 to call" in done.stdout) == (0, True), done.stderr
    done = evalake_here(*words, folder=tmp_path, OPENAI_API_KEY="")
    assert (done.returncode, "needs a key: set OPENAI_API_KEY" in done.stderr) == (2, True)
