"""A copy of a fork server against the same module as a process that starts by itself."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import psutil
import pytest

from tests.servers.copies import Copy

PIPES = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
# Ends by itself where its standard input does
TOLD = """
import json, os, sys, tempfile
from prefect.settings import PREFECT_API_URL, PREFECT_HOME
print(json.dumps([
    __name__, sys.argv, os.getcwd(), dict(os.environ), sys.path, os.getppid(), os.getpgrp(),
    sorted(os.listdir("/proc/self/fd")),
    tempfile.gettempdir(), PREFECT_API_URL.value(), str(PREFECT_HOME.value()), sys.stdin.read(),
]))
sys.exit(7)
"""


def usual(*words: str, cwd: Path, env: Mapping[str, str]) -> "subprocess.Popen[str]":
    """Start the module by itself."""
    return subprocess.Popen([sys.executable, "-m", *words], cwd=cwd, env=env, **PIPES)  # type: ignore[call-overload]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """One in which `python -m told` finds a module that tells what it has."""
    (tmp_path / "told.py").write_text(TOLD)
    (tmp_path / "temporary").mkdir()
    own = {
        "PREFECT_API_URL": "http://127.0.0.1:1/api",
        "PREFECT_HOME": str(tmp_path),
        "TMPDIR": str(tmp_path / "temporary"),
    }
    return {**os.environ, **own, "PYTHONPATH": str(tmp_path / "more")}


def test_a_copy_has_what_a_process_has_that_starts_by_itself(tmp_path: Path, environment: dict[str, str]) -> None:
    told = [
        process.communicate("from its parent")[0].replace(str(tmp_path / "told.py"), "told")
        for process in (
            Copy("told", "--word", cwd=tmp_path, env=environment, **PIPES),
            usual("told", "--word", cwd=tmp_path, env=environment),
        )
    ]
    assert told[0] == told[1]
    assert '"from its parent"' in told[0]
    assert '"http://127.0.0.1:1/api"' in told[0]


def test_it_is_a_child_that_ends_with_its_own_code_or_by_a_signal(tmp_path: Path, environment: dict[str, str]) -> None:
    ends = Copy("told", cwd=tmp_path, env=environment, **PIPES)
    ends.communicate("")
    assert ends.returncode == 7
    killed = Copy("told", cwd=tmp_path, env=environment, **PIPES)
    assert psutil.Process(killed.pid).ppid() == os.getpid()
    killed.kill()
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL


def test_what_would_be_imported_otherwise_is_copied_from_another(tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "told.py").write_text("print(open('/proc/self/environ').read())  # with which the fork server began")
    for level in ("WARNING", "ERROR", "WARNING"):
        process = Copy("told", cwd=tmp_path, env={**environment, "PREFECT_LOGGING_LEVEL": level}, **PIPES)
        assert f"PREFECT_LOGGING_LEVEL={level}\0" in process.communicate()[0]


def test_a_module_that_is_not_there_ends_it_as_it_ends_every_process(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    ended = Copy("nothing_of_that_name", cwd=tmp_path, env=environment, **PIPES)
    assert "No module named nothing_of_that_name" in ended.communicate()[0]
    assert ended.returncode == 1
