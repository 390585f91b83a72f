"""A process beside the service: it ends with the service, however that ends, and is there again where it dies alone."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from service.beside import free_port
from tests.e2e.processes import ROOT, wait_until

KEEPER = (
    "import sys; from service import beside; beside.SETTLED_SECONDS = float(sys.argv[1]); beside.keep(sys.argv[2:])"
)
CHARGE = "import os, pathlib, signal; pathlib.Path('pids').open('a').write(f'{os.getpid()}\\n'); signal.pause()\n"

# Prefect's worker asks itself to end by Ctrl-C, as it understands SIGTERM.
WORKER = """
import os, pathlib, signal
signal.signal(signal.SIGTERM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
pathlib.Path("started").touch()
try:
    while True:
        signal.pause()
except KeyboardInterrupt:
    pathlib.Path("ended").touch()
"""


def test_it_is_started_again_where_it_dies_and_ends_with_the_service(tmp_path: Path) -> None:
    (tmp_path / "charge.py").write_text(CHARGE)
    pids = tmp_path / "pids"

    def started(count: int) -> list[int]:
        found = [int(line) for line in pids.read_text().split()] if pids.exists() else []
        return found if len(found) == count else []

    command = [sys.executable, "-c", KEEPER, "0", "charge"]
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(tmp_path)))}
    with subprocess.Popen(command, cwd=tmp_path, env=paths, stdin=subprocess.PIPE) as keeper:
        (first,) = wait_until(lambda: started(1), "the first start")
        os.kill(first, signal.SIGKILL)
        _, second = wait_until(lambda: started(2), "the second start")
        keeper.send_signal(signal.SIGTERM)  # meant for the service, which decides
        assert psutil.pid_exists(second)
        assert keeper.stdin is not None
        keeper.stdin.close()
        keeper.wait(60)
        assert not psutil.pid_exists(second)


def test_it_is_told_to_end_in_the_way_that_a_worker_understands(tmp_path: Path) -> None:
    (tmp_path / "charge.py").write_text(WORKER)
    started, ended = tmp_path / "started", tmp_path / "ended"
    command = [sys.executable, "-c", KEEPER, "600", "charge"]
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(tmp_path)))}
    with subprocess.Popen(command, cwd=tmp_path, env=paths, stdin=subprocess.PIPE) as keeper:
        wait_until(started.exists, "the start")
        assert keeper.stdin is not None
        keeper.stdin.close()
        keeper.wait(60)
    assert ended.exists(), "it was killed"


SERVICE = """
import signal
from service.beside import Beside
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # which `nohup make test` has all ignore
beside = Beside("charge")
signal.pause()
"""


@pytest.mark.parametrize("deadly", [signal.SIGKILL, signal.SIGHUP])
def test_it_ends_also_where_all_processes_of_the_service_are_ended_at_once(tmp_path: Path, deadly: int) -> None:
    (tmp_path / "charge.py").write_text(CHARGE)
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(tmp_path)))}
    command = [sys.executable, "-c", SERVICE]
    with subprocess.Popen(command, cwd=tmp_path, env=paths, start_new_session=True) as service:
        pids = tmp_path / "pids"
        charge = psutil.Process(int(wait_until(lambda: pids.exists() and pids.read_text().strip(), "the start")))
        os.killpg(service.pid, deadly)
    assert psutil.wait_procs([charge], timeout=60)[1] == []


def test_what_ends_at_its_start_is_not_started_again(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KEEPER, "600", "there_is_no_such_module"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as keeper:
        keeper.wait(120)  # while its service is there
        assert keeper.stderr is not None
        said = keeper.stderr.read()
    assert b"there_is_no_such_module" in said


def test_a_port_is_given_to_nobody_else_until_a_server_asks_for_it() -> None:
    reserved = free_port()
    given = {free_port() for _ in range(2000)}
    with socket.socket() as client, pytest.raises(OSError, match="in use"):
        client.bind(("127.0.0.1", reserved))
    assert len(given) == 2000
    assert reserved not in given
    with socket.create_server(("127.0.0.1", reserved)) as server:  # with SO_REUSEADDR, as servers do
        assert server.getsockname()[1] == reserved
