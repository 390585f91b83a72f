"""A process that waits to be a worker's warm process against one that starts by itself."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers.copies import ROOT

# Stands in for a worker, which has its own `subprocess` for what it starts, and for what that is to be.
WORKER = """
import json, os, sys
from cli.warm import flow_runs
from tests.servers.ready import be_ready

sys.modules["told"] = os
if not be_ready():
    listener = os.open(__file__, os.O_RDONLY)
    started = [
        flow_runs.subprocess.Popen(
            [sys.executable, "-P", "-m", "told", "--word", str(listener)],
            env={**os.environ, "PYTHONPATH": os.path.dirname(__file__), "WORD": "word"},
            pass_fds=[listener],
            stdin=flow_runs.subprocess.PIPE,
        )
        for _ in range(2)
    ]
    for process in started:
        process.communicate(b"from the worker")
    print([process.returncode for process in started])
else:
    sys.argv[0] = os.path.join(os.path.dirname(__file__), "told.py")
    exec(open(sys.argv[0]).read())
"""
TOLD = """
import os, sys
listener = os.fstat(int(sys.argv[2])).st_ino
print([sys.argv, sys.orig_argv, sorted(os.environ.items()), os.getppid(), sys.stdin.read(), listener], flush=True)
sys.exit(3)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the script of a worker and the module that it starts."""
    (tmp_path / "worker.py").write_text(WORKER)
    (tmp_path / "told.py").write_text(TOLD)
    return tmp_path


def run_worker(folder: Path) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "worker.py"], cwd=folder, env=environment, capture_output=True, text=True, timeout=60
    )


def test_it_has_what_it_is_started_with_and_the_next_one_starts_by_itself(folder: Path) -> None:
    worker = run_worker(folder)
    *told, codes = worker.stdout.splitlines()
    assert codes == "[3, 3]", worker.stderr
    assert told[0] == told[1]
    assert "('WORD', 'word')" in told[0]
    assert "'from the worker'" in told[0]


def test_it_ends_with_a_worker_that_starts_nothing(folder: Path) -> None:
    (folder / "worker.py").write_text("from tests.servers.ready import be_ready; print(be_ready())")
    worker = run_worker(folder)  # which it would otherwise keep waiting, for it holds the output open
    assert worker.stdout == "False\n", worker.stderr
