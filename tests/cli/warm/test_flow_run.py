"""A flow run as a copy of its worker's warm process: how it begins and ends, and where it is no copy."""

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from cli.warm import likeness
from tests.cli.command import ROOT
from tests.cli.warm.conftest import WORKER
from tests.e2e.processes import wait_until


@pytest.fixture(scope="module")
def worker(environment: dict[str, str]) -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen(
        [sys.executable, "-P", "-c", WORKER],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        yield process


@pytest.fixture(scope="module")
def command(worker: "subprocess.Popen[str]") -> list[str]:
    assert worker.stdout is not None
    return shlex.split(worker.stdout.readline())


def copies(worker: "subprocess.Popen[str]") -> list[psutil.Process]:
    """The copies that are flow runs now."""
    there = []
    for warm in psutil.Process(worker.pid).children():
        for keeper in warm.children():
            with suppress(psutil.NoSuchProcess):  # one that ended while it was looked at
                there += [copy for copy in keeper.children() if copy.status() != psutil.STATUS_ZOMBIE]
    return there


FlowRun = tuple["subprocess.Popen[bytes]", psutil.Process]


@contextmanager
def started(command: list[str], environment: dict[str, str], folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Start a flow run that waits for its server, as a worker does."""
    named = {**environment, "PREFECT__FLOW_RUN_ID": "f9f90b51-6f59-4f54-8dd7-3de8b6f40de7"}
    with subprocess.Popen(command, cwd=folder, env=named) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def flow_run(
    worker: "subprocess.Popen[str]", command: list[str], environment: dict[str, str], tmp_path: Path
) -> Iterator[FlowRun]:
    """A flow run as its worker sees it, and the copy that it is."""
    wait_until(lambda: not copies(worker), "the end of the copies of other tests")
    with started(command, environment, tmp_path) as process:
        (copy,) = wait_until(lambda: copies(worker), "a copy that is the flow run")
        yield process, copy
    wait_until(lambda: not copy.is_running(), "the end of the copy")


def is_the_engine(process: "subprocess.Popen[bytes]") -> bool:
    """Tell whether the process that a worker started is the flow run itself by now."""
    return psutil.Process(process.pid).cmdline()[1:] == ["-m", "prefect.engine"]


def test_each_is_prefects_engine_with_its_own_environment_and_output(
    command: list[str], environment: dict[str, str], tmp_path: Path
) -> None:
    for name in ("one", "two", "three"):
        named = {**environment, "PREFECT__FLOW_RUN_ID": name}
        there = subprocess.run(command, cwd=tmp_path, env=named, capture_output=True, text=True)
        assert there.returncode == 1
        assert "Invalid flow run id. Received arguments: " in there.stderr
        assert "badly formed hexadecimal UUID string" in there.stderr


def test_it_is_where_its_worker_starts_it(flow_run: FlowRun, tmp_path: Path) -> None:
    _, copy = flow_run
    wait_until(lambda: Path(copy.cwd()) != ROOT, "that it has left the folder of the warm process")
    assert Path(copy.cwd()) == tmp_path


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_signal_of_its_worker_ends_it_by_the_same(flow_run: FlowRun, number: signal.Signals) -> None:
    process, copy = flow_run
    process.send_signal(number)
    assert process.wait(timeout=300) == -number
    wait_until(lambda: not copy.is_running(), "the end of the copy")


def test_where_the_system_kills_it_its_worker_learns_that(flow_run: FlowRun) -> None:
    process, copy = flow_run
    copy.kill()
    assert process.wait(timeout=300) == -signal.SIGKILL


def test_one_with_other_settings_is_the_engine_itself(
    worker: "subprocess.Popen[str]", command: list[str], environment: dict[str, str], tmp_path: Path
) -> None:
    with started(command, {**environment, "PREFECT_LOGGING_LEVEL": "DEBUG"}, tmp_path) as process:
        wait_until(lambda: is_the_engine(process), "that it begins by itself")
        assert copies(worker) == []


def test_code_that_has_changed_is_what_the_next_ones_run(
    worker: "subprocess.Popen[str]", command: list[str], environment: dict[str, str], tmp_path: Path
) -> None:
    file = Path(likeness.__file__)
    was = file.stat()
    os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns + 1_000_000_000))
    try:
        with started(command, environment, tmp_path) as first:
            wait_until(lambda: is_the_engine(first), "that it begins by itself, for what is warm is out of date")
            assert copies(worker) == []
        with started(command, environment, tmp_path) as second:
            (copy,) = wait_until(lambda: copies(worker), "a copy with the code of now")
            assert not is_the_engine(second)
            assert copy.is_running()
    finally:
        os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns))
