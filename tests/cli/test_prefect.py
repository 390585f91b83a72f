"""`evalake prefect` in a folder full of other people's files."""

import os
import subprocess
import sys
from pathlib import Path

from tests.cli.hostile import markers


def test_prefects_own_command_runs_it_and_ours_around_it_does_not(hostile: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    place = {"PREFECT_HOME": str(hostile.parent / "home"), "PREFECT_API_URL": "http://127.0.0.1:9/api"}
    worker = ("worker", "start", "--pool", "evalake")  # ends at once, for there is no server

    def start(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=hostile, env={**environment, **place}, capture_output=True, text=True, timeout=500
        )

    binaries = Path(sys.executable).parent
    start(str(binaries / "evalake"), "prefect", *worker)
    assert markers(hostile) == []
    start(str(binaries / "prefect"), *worker)
    assert markers(hostile) != []
