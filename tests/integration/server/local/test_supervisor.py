"""A lake has one supervisor: a second one says so and ends; tests/e2e/test_up.py has what one does."""

import subprocess
import sys
from pathlib import Path

import pytest

from evalake.server.local.background import STATE, held
from tests.integration.cli.command import ROOT


def test_a_second_one_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STATE, str(tmp_path))
    words = [sys.executable, "-P", "-m", "evalake.server.local.supervisor", "/a/lake", "0", ""]
    with held("/a/lake"):
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (
        1,
        "evalake: servers of the lake /a/lake are starting or running already: evalake status\n",
    )
