"""The warm process of a worker: it ends with the worker, and where there can be none flow runs begin without it."""

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from cli.warm.flow_runs import WarmFlowRuns
from tests.cli.warm.conftest import WORKER
from tests.e2e.processes import wait_until


@contextmanager
def another_worker(
    environment: dict[str, str], temporary: Path
) -> Iterator[tuple["subprocess.Popen[str]", psutil.Process, Path]]:
    """A worker, its warm process, and the folder of that."""
    words, own = [sys.executable, "-P", "-c", WORKER], {**environment, "TMPDIR": str(temporary)}
    with subprocess.Popen(words, env=own, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        folder = Path(shlex.split(worker.stdout.readline())[-1])
        (warm,) = psutil.Process(worker.pid).children()
        yield worker, warm, folder


def test_it_ends_with_its_worker_however_that_ends(environment: dict[str, str], tmp_path: Path) -> None:
    with another_worker(environment, tmp_path) as (worker, warm, folder):
        assert folder.parent == tmp_path
        assert folder.stat().st_mode & 0o077 == 0
        worker.kill()
    wait_until(lambda: not warm.is_running(), "the end of the warm process")
    assert not folder.exists()


def test_a_worker_whose_warm_process_is_killed_leaves_nothing_of_it(
    environment: dict[str, str], tmp_path: Path
) -> None:
    with another_worker(environment, tmp_path) as (_, warm, folder):
        warm.kill()
    assert not folder.exists()


def test_where_it_fails_flow_runs_begin_without_it(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "flows").mkdir()
    (tmp_path / "flows" / "__init__.py").write_text("raise RuntimeError('broken')")
    code = """
import os, shlex, subprocess
from cli.warm.flow_runs import WarmFlowRuns
flow_runs = WarmFlowRuns()
first = flow_runs.command({**os.environ, "PYTHONPATH": "."})
subprocess.run(shlex.split(first))
print(flow_runs.command({**os.environ}), os.listdir(os.environ["TMPDIR"]))
"""
    named = {**environment, "PREFECT__FLOW_RUN_ID": "nothing", "TMPDIR": str(temporary := tmp_path / "temporary")}
    temporary.mkdir()
    words = [sys.executable, "-P", "-c", code]
    done = subprocess.run(words, cwd=tmp_path, env=named, capture_output=True, text=True)
    assert done.stdout == f"{sys.executable} -m prefect.engine []\n"
    assert "Invalid flow run id" in done.stderr
    assert "RuntimeError: broken" in done.stderr


def test_where_it_has_no_place_flow_runs_begin_without_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/nowhere")
    flow_runs = WarmFlowRuns()
    assert {flow_runs.command(dict(os.environ)) for _ in range(2)} == {f"{sys.executable} -m prefect.engine"}
    (told,) = caplog.messages
    assert "/nowhere" in told
