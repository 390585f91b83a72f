"""Flows that a command runs begin once Prefect can be used, and know who called them."""

import os
import subprocess
import sys
from pathlib import Path

from tests.integration.cli.command import ROOT

BEGIN = """
import signal
from evalake.cli.environment import flows_begun
from evalake.core.errors import EvalakeError
from evalake.tasks.runtime.form import CALLER
try:
    with flows_begun(None):
        pass
except EvalakeError as error:
    print(type(error).__name__)
print(CALLER.get(), signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""


def begun(home: Path) -> str:
    """What is printed where a command with this PREFECT_HOME begins its flows."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    done = subprocess.run(
        [sys.executable, "-c", BEGIN],
        cwd=ROOT,
        env={**environment, "PREFECT_HOME": str(home)},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return done.stdout


def test_they_are_called_by_the_command_line_and_end_at_once_with_ctrl_c(tmp_path: Path) -> None:
    assert begun(tmp_path / "home") == "command line False\n"


def test_a_server_that_cannot_be_used_is_refused_before_anything_else(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert begun(tmp_path / "file") == "ServerError\nPython True\n"
