"""Processes beside this one: they end with their parent, start again where they die, and keep sockets of their own."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
import pytest

from evalake.core.errors import UsageError
from evalake.server.processes import READY, address_of, inherited, listen
from tests.e2e.processes import PATIENCE_SECONDS, PLAIN, ROOT, have_ended, wait_until

# Prints the id of each process of its charge that it knows, and ends when its input does.
PARENT = """
import signal, sys
from evalake.server import processes
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # which `nohup make test` has all ignore
processes.SETTLED_SECONDS = float(sys.argv[1])
child = processes.Supervised("evalake.server.processes", "charge")
sys.stdin.readline()
child.stop()
"""
CHARGE = "import os, pathlib, signal; pathlib.Path('pids').open('a').write(f'{os.getpid()}\\n'); signal.pause()\n"
# Prefect's worker asks itself to end by Ctrl-C, as it understands SIGTERM.
WORKER = """
import os, pathlib, signal, subprocess, sys
signal.signal(signal.SIGTERM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
left_behind = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
try:
    pathlib.Path("pids").write_text(f"{os.getpid()} {left_behind.pid}")
    while True:
        signal.pause()
except KeyboardInterrupt:
    pathlib.Path("ended").touch()
"""
SERVING = """
import sys
from evalake.server.processes import Supervised, address_of, listen
listener = listen("127.0.0.1", 0)
child = Supervised("serving", str(listener.fileno()), holding=[listener])
while not child.is_ready(0.1):
    assert child.is_running
print(address_of(listener), flush=True)
sys.stdin.readline()
child.stop()
"""
SERVER = """
import os, socket, sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from evalake.server.processes import follow_parent

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(str(os.getpid()).encode())

report_ready = follow_parent()
server = HTTPServer(("127.0.0.1", 0), Handler, bind_and_activate=False)
server.socket = socket.socket(fileno=int(sys.argv[1]))
report_ready()
server.serve_forever()
"""
CHILD = """
import os, subprocess, sys, threading
from evalake.server.processes import follow_parent
report = follow_parent()
inner = "import os; print(os.read(0, 1) == b'', flush=True)"  # it has no line, and does not wait for one
subprocess.run([sys.executable, "-c", inner], check=True)
report()
threading.Event().wait()
"""
REUSE: tuple[list[int], ...] = (
    [],
    [socket.SO_REUSEADDR],
    [socket.SO_REUSEPORT],
    [socket.SO_REUSEADDR, socket.SO_REUSEPORT],
)


@contextmanager
def parent(folder: Path, code: str, *words: str) -> Iterator["subprocess.Popen[str]"]:
    """A process that supervises; it is killed at the end, if it still runs."""
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(folder)))}
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", code, *words]
    with subprocess.Popen(
        command, cwd=folder, env=paths, stdin=pipe, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def started(folder: Path, count: int) -> list[int]:
    """The ids of the processes that were started, once there are so many."""
    pids = folder / "pids"

    def found() -> list[int]:
        there = [int(word) for word in pids.read_text().split()] if pids.exists() else []
        return there if len(there) == count else []

    return list(wait_until(found, f"the start of {count} processes"))


def told_to_stop(process: "subprocess.Popen[str]") -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.close()
    assert process.wait(PATIENCE_SECONDS) == 0


def test_it_is_started_again_where_it_dies_and_ends_when_it_is_told_to(tmp_path: Path) -> None:
    (tmp_path / "charge.py").write_text(CHARGE)
    with parent(tmp_path, PARENT, "0") as process:
        (first,) = started(tmp_path, 1)
        os.kill(first, signal.SIGKILL)
        _, second = started(tmp_path, 2)
        assert psutil.pid_exists(second)
        told_to_stop(process)
        assert not psutil.pid_exists(second)
    assert len(started(tmp_path, 2)) == 2


def test_it_is_told_to_end_in_the_way_that_a_worker_understands_and_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "charge.py").write_text(WORKER)
    with parent(tmp_path, PARENT, "600") as process:
        there = [psutil.Process(pid) for pid in started(tmp_path, 2)]
        told_to_stop(process)
    assert (tmp_path / "ended").exists(), "it was killed"
    assert have_ended(there)


@pytest.mark.parametrize("deadly", [signal.SIGKILL, signal.SIGHUP])
def test_it_ends_with_all_that_it_started_where_its_parent_is_killed(tmp_path: Path, deadly: int) -> None:
    (tmp_path / "charge.py").write_text(WORKER)
    with parent(tmp_path, PARENT, "600") as process:
        there = [psutil.Process(pid) for pid in started(tmp_path, 2)]
        os.killpg(process.pid, deadly)
    assert have_ended(there)
    assert (tmp_path / "ended").exists(), "it was killed"


def test_what_ends_at_its_start_is_not_started_again(tmp_path: Path) -> None:
    code = PARENT.replace("sys.stdin.readline()", "child._keeping.join()")
    with parent(tmp_path, code, "600") as process:
        assert process.wait(PATIENCE_SECONDS) == 0
        assert process.stderr is not None
        assert process.stderr.read().count("No module named charge") == 1


def test_a_server_that_crashes_answers_again_at_the_same_socket_and_nobody_waits_in_vain(tmp_path: Path) -> None:
    (tmp_path / "serving.py").write_text(SERVER)
    with parent(tmp_path, SERVING) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        first = int(httpx.get(address, verify=PLAIN, timeout=600).text)
        os.kill(first, signal.SIGKILL)
        second = int(httpx.get(address, verify=PLAIN, timeout=600).text)  # no connection is refused meanwhile
        told_to_stop(process)
    assert first != second
    assert not psutil.pid_exists(second)


def test_a_report_comes_from_the_child_alone_and_the_end_of_the_line_ends_the_child() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD],
            cwd=ROOT,
            stdin=theirs.fileno(),
            stdout=subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
    with child:
        assert ours.recv(len(READY)) == READY
        ours.close()
        assert child.wait(PATIENCE_SECONDS) < 0  # by SIGTERM
        assert child.stdout is not None
        assert child.stdout.read() == b"True\n"


def test_a_port_that_is_taken_is_refused_and_its_process_named() -> None:
    with listen("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with pytest.raises(UsageError, match=f"cannot listen on 127.0.0.1, port {port}: .*process {os.getpid()} "):
            listen("127.0.0.1", port)


@pytest.mark.parametrize("options", REUSE, ids=["plain", "address", "port", "both"])
@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_nobody_else_listens_at_our_port(host: str, options: list[int]) -> None:
    with listen("127.0.0.1", 0) as ours, socket.socket() as theirs:
        for option in options:
            theirs.setsockopt(socket.SOL_SOCKET, option, 1)
        with pytest.raises(OSError, match="in use"):
            _take(theirs, host, ours.getsockname()[1])


@pytest.mark.parametrize("options", REUSE, ids=["plain", "address", "port", "both"])
def test_we_do_not_listen_where_another_does(options: list[int]) -> None:
    with socket.socket() as theirs:
        for option in options:
            theirs.setsockopt(socket.SOL_SOCKET, option, 1)
        _take(theirs, "127.0.0.1", 0)
        with pytest.raises(UsageError, match="in use"):
            listen("127.0.0.1", theirs.getsockname()[1])


def test_an_inherited_socket_is_the_same_one() -> None:
    with listen("::1", 0) as ours, inherited(str(os.dup(ours.fileno()))) as again:
        assert address_of(again) == address_of(ours)
        assert address_of(ours).startswith("http://[::1]:")


def _take(listener: socket.socket, host: str, port: int) -> None:
    listener.bind((host, port))
    listener.listen()
