"""Another local user who wants the port of a server that evalake starts: neither believed, nor told a password."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from tests.e2e.processes import ROOT, command_lines, have_ended, require_no_errors, wait_until
from tests.integration.cli.command import evalake, evalake_here

pytestmark = pytest.mark.e2e

# Asks for every port at which a process of the user has begun to listen, in each way there is, also later; says which
# it got. The ports of tests beside this one stay theirs. The pause leaves the processors to the servers, which need
# seconds to start again.
SQUATTER = """
import os, pathlib, socket, sys, time
from contextlib import suppress
WAYS = [(), (socket.SO_REUSEADDR,), (socket.SO_REUSEPORT,), (socket.SO_REUSEADDR, socket.SO_REUSEPORT)]

def listened_at():
    lines = [line.split() for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {(columns[9], int(columns[1].rpartition(":")[2], 16)) for columns in lines if columns[3] == "0A"}

def is_of_user(inode):
    for place in pathlib.Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if sys.argv[1].encode() in (place / "environ").read_bytes():
                for each in os.listdir(place / "fd"):
                    with suppress(OSError):
                        if os.readlink(place / "fd" / each) == f"socket:[{inode}]":
                            return True

seen, tried = listened_at(), set()
print("begun", flush=True)
while True:
    there = listened_at()
    tried |= {port for inode, port in there - seen if is_of_user(inode)}
    seen |= there
    time.sleep(0.01)
    for port in tried:
        for host in ("127.0.0.1", "0.0.0.0"):
            for options in WAYS:
                thief = socket.socket()
                for option in options:
                    thief.setsockopt(socket.SOL_SOCKET, option, 1)
                try:
                    thief.bind((host, port))
                    thief.listen()
                    print(port, flush=True)
                except OSError:
                    pass
                thief.close()
"""


class Fake:
    """A server that answers 200 to everything, and keeps the headers it was sent."""

    def __init__(self) -> None:
        self.asked: list[dict[str, str]] = []
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                fake.asked.append({name.lower(): value for name, value in self.headers.items()})
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b"true")

            do_POST = do_GET  # noqa: N815 - as the library names it

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def end(self) -> None:
        """Close it."""
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def fake() -> Iterator[Fake]:
    server = Fake()
    yield server
    server.end()


class User:
    """Somebody with a folder, a lake and a state folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.place = {
            "XDG_STATE_HOME": str(folder / "state"),
            "EVALAKE_LAKE": str(folder / "lake"),
            "PREFECT_HOME": str(folder / "prefect"),
            "PREFECT_API_URL": "",
        }

    def evalake(self, *words: str, code: int = 0) -> str:
        """Run the command; returns all that it wrote."""
        run = evalake if words[0] == "up" and not code else evalake_here
        done = run(*words, folder=self.folder, **self.place)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def status(self) -> Any:
        """Return what `evalake status` says."""
        return json.loads(evalake_here("status", "--json", folder=self.folder, **self.place).stdout)

    def started(self) -> list[str]:
        """Return the command lines of all processes that serve this user's lake."""
        return [line for line in command_lines(psutil.process_iter()) if self.place["EVALAKE_LAKE"] in line]


@pytest.fixture
def user(tmp_path: Path) -> User:
    return User(tmp_path)


@contextmanager
def squatting(folder: Path) -> Iterator[list[int]]:
    """Have another process ask for every port of the user with this folder; yields those that it got, at the end."""
    got: list[int] = []
    with subprocess.Popen([sys.executable, "-c", SQUATTER, str(folder)], stdout=subprocess.PIPE, text=True) as squatter:
        try:
            assert squatter.stdout is not None
            assert squatter.stdout.readline() == "begun\n"
            yield got
            assert squatter.poll() is None
        finally:
            squatter.kill()
            got += [int(line) for line in squatter.stdout or ()]


def test_a_port_that_another_holds_is_refused_before_anything_starts(user: User, fake: Fake) -> None:
    for command in (("up", "--no-workers"), ("serve",), ("view",)):
        said = user.evalake(*command, "--port", str(fake.port), code=1 if command[0] == "up" else 2)
        assert re.search(rf"cannot listen on 127.0.0.1, port {fake.port}: .*process {os.getpid()} ", said), said
    assert "nothing runs in the background" in user.evalake("status", code=1)
    wait_until(lambda: not user.started(), "the end of all that was started")
    assert fake.asked == []


def test_servers_whose_state_is_lost_are_named_and_a_killed_up_leads_nobody_to_who_listens_there_now(
    user: User, fake: Fake
) -> None:
    """The next `up` reads nothing of what was left, and nobody gets a port of it, whenever its servers start."""
    assert "none: nothing is deployed" in user.evalake("up")
    there = user.status()
    pid, state = there["pid"], user.folder / "state"
    state.rename(user.folder / "lost")
    for command in ("up", "status", "down"):
        assert f"end them by `kill {pid}`" in user.evalake(command, code=1)
    shutil.rmtree(state, ignore_errors=True)
    (user.folder / "lost").rename(state)
    _kill_and_leave(there, fake)
    assert "nothing runs in the background" in user.evalake("status", code=1)
    with squatting(user.folder) as got:
        user.evalake("up", "--no-workers")  # a command that comes meanwhile reads nothing of what was left
        there = user.status()
        assert str(fake.port) not in json.dumps(there)
        _start_again_unseen(there)
    user.evalake("down")
    assert not {_port(there["prefect"]), _port(there["pages"])} & {*got}
    wait_until(lambda: not user.started(), "the end of all that was started")
    require_no_errors(Path(there["log"]))
    assert fake.asked == []


def _kill_and_leave(there: Any, fake: Fake) -> None:
    """Kill a supervisor whose addresses in its state folder then lead to the fake."""
    folder, processes = Path(there["log"]).parent, psutil.Process(there["pid"]).children(recursive=True)
    left = json.loads((folder / "up.json").read_text())
    os.kill(there["pid"], signal.SIGKILL)
    assert have_ended(processes)
    left["prefect"], left["pages"] = (f"http://127.0.0.1:{fake.port}{path}" for path in ("/api", ""))
    (folder / "up.json").write_text(json.dumps(left))


def _start_again_unseen(there: Any) -> None:
    """Kill each server, which is answered for by another process at the same socket; no connection is refused."""
    supervisor = psutil.Process(there["pid"])
    assert len(supervisor.children(recursive=True)) <= 4
    name, _, password = there["password"].partition(":")
    prefect, pages = httpx.BasicAuth(name, password), {"authorization": f"Bearer {there['token']}"}
    for module, asked in (
        ("evalake.server.local.server", {"url": f"{there['prefect']}/admin/version", "auth": prefect}),
        ("evalake.server.local.supervisor", {"url": f"{there['pages']}/api/v1/runs", "headers": pages}),
    ):
        (server,) = [each for each in supervisor.children() if module in each.cmdline()]
        server.kill()
        assert httpx.get(**asked, timeout=600, trust_env=False).status_code == 200
        assert not server.is_running()


def test_the_server_of_one_command_is_ours_from_its_first_moment_to_its_last(tmp_path: Path) -> None:
    code = """
import os, signal, sys
from evalake.cli.terminal import prepare
prepare()
from evalake.server.local.server import TemporaryServer
server = TemporaryServer()
with server.in_use():
    import httpx
    name, _, password = os.environ["PREFECT_API_AUTH_STRING"].partition(":")
    ask = lambda: httpx.get(os.environ["PREFECT_API_URL"] + "/admin/version", auth=(name, password), timeout=600)
    first, pid = ask(), server.pid
    os.kill(pid, signal.SIGKILL)
    print(first.status_code, ask().status_code, pid != server.pid, os.environ["PREFECT_API_URL"], flush=True)
    sys.stdin.readline()
"""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    environment |= {"PREFECT_HOME": str(tmp_path / "home"), "PYTHONPATH": str(ROOT)}
    pipe = subprocess.PIPE
    with squatting(tmp_path) as got:
        command = subprocess.Popen(
            [sys.executable, "-c", code], env=environment, cwd=tmp_path, stdin=pipe, stdout=pipe, stderr=pipe, text=True
        )
        assert command.stdout is not None
        said = command.stdout.readline()
    with command:
        _, messages = command.communicate("\n")
    assert said.startswith("200 200 True "), messages
    assert messages == ""
    assert _port(said) not in got


def _port(address: str) -> int:
    return int(re.findall(r":(\d+)", address)[0])
