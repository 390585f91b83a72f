"""The pages of `evalake up`: why they do not start is one line; tests/e2e/test_up.py has what they show."""

import os
import subprocess
import sys
from pathlib import Path

from evalake.server.processes import listen
from tests.integration.cli.command import ROOT


def test_a_mistake_in_the_configuration_is_one_line(tmp_path: Path) -> None:
    with listen("127.0.0.1", 0) as pages, listen("127.0.0.1", 0) as prefect:
        numbers = [pages.fileno(), prefect.fileno()]
        command = [sys.executable, "-m", "evalake.server.local.pages", *map(str, numbers), str(tmp_path / "lake")]
        with subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, "EVALAKE_CONFIG": str(tmp_path / "missing.toml")},
            stdin=subprocess.PIPE,  # which ends with this process
            stderr=subprocess.PIPE,
            pass_fds=numbers,
            text=True,
            start_new_session=True,
        ) as process:
            code, said = process.wait(120), process.stderr.read() if process.stderr else ""
    assert code == 1
    assert said.startswith("evalake: ")
    assert "missing.toml" in said
    assert said.count("\n") == 1
