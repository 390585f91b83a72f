"""The servers that `evalake up` keeps for a lake: how commands find them, and the supervisor that runs them.

Every command of the same user finds them by a file. It holds passwords, so it is the user's alone, and it never lies in
the lake. Whether the servers still run is told by a lock that the supervisor holds until it ends, however it ends.

`python -m evalake.server.local.supervisor LAKE PORT PROJECT` is the supervisor of a Prefect server, workers of the
deployments, and `evalake serve`, until SIGTERM. It binds the ports of both servers before it starts them, and holds
them until all its children have ended, so that nobody else can ever listen there. Children inherit the sockets,
restarted ones too, and report readiness over a line that only they have. What it does it says on standard output, a
line each, to the command that started it; `READY` is the last one. All else goes to its log. Its children end with it,
however it ends (`evalake/server/processes.py`).
"""

import fcntl
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from evalake.core.configuration import VIEWER_URL, whole_address
from evalake.core.errors import EvalakeError
from evalake.core.files import STATE, is_ours, lake_folder, make_private, open_private
from evalake.core.prefect_settings import PROFILES
from evalake.core.redaction import on_one_line
from evalake.server.processes import Supervised, address_of, follow_parent, inherited, listen

ADDRESS, PASSWORD = "PREFECT_API_URL", "PREFECT_API_AUTH_STRING"
# A worker whose server is busy (SQLite's lock) asks again after 2, 4, 8 … 256 seconds. With Prefect's own five times it
# outlasts one minute: then a run that it was about to start is Crashed for good, or the worker ends.
PATIENCE = {"PREFECT_CLIENT_MAX_RETRIES": "8"}


@dataclass(frozen=True, kw_only=True)
class Background:
    """The servers of a lake: their addresses, the password and token for them, and the process to end."""

    lake: str
    pid: int
    prefect: str  # the address of its API
    password: str  # user:password of the Prefect server
    pages: str  # the address of `evalake serve`
    token: str  # that `evalake serve` asks for
    pools: tuple[str, ...]  # that have a worker here

    @property
    def prefect_pages(self) -> str:
        """The address of Prefect's own pages."""
        return self.prefect.removesuffix("/api")

    @property
    def link(self) -> str:
        """The address of the list of runs with the token in it; a lake without sessions has an empty dashboard."""
        return f"{self.pages}/runs#token={self.token}"

    def use(self) -> None:
        """Have Prefect use this server, here and in processes that are started from now on."""
        os.environ[ADDRESS], os.environ[PASSWORD] = self.prefect, self.password
        os.environ.setdefault(VIEWER_URL, self.pages)


def folder_of(lake: str) -> Path:
    """Name the folder in which the state of a lake's servers is kept, by the lake's whole address."""
    return lake_folder(whole_address(lake))


def make_folder_of(lake: str) -> Path:
    """Make the folder for the state of a lake's servers. Raises EvalakeError where another user has made it."""
    folder = folder_of(lake)
    if not is_ours(folder):
        raise EvalakeError(f"{folder} or the folder above it is another user's: name another place by {STATE}")
    make_private(folder)
    return folder


def find(lake: str) -> Background | None:
    """Find the running servers of a lake; None without any.

    Raises EvalakeError where the file that describes them cannot be read.
    """
    file = folder_of(lake) / "up.json"
    try:
        if not is_running(lake):
            return None
        with open_private(file, os.O_RDONLY) as opened:
            read = json.load(opened)
        return Background(**{**read, "pools": tuple(read["pools"])})
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise EvalakeError(f"{file} cannot be read: end its servers with `evalake down`, and delete it") from error


def are_new(lake: str, seconds: float) -> bool:
    """Tell whether the servers of a lake run, and have been up for less than so many seconds."""
    return find(lake) is not None and time.time() - (folder_of(lake) / "up.json").stat().st_mtime < seconds


def is_running(lake: str) -> bool:
    """Tell whether a supervisor of this lake runs, even if its servers have not started yet."""
    if not is_ours(folder_of(lake)):
        return False
    try:
        lock = open_private(folder_of(lake) / "lock", os.O_RDWR)
    except FileNotFoundError:
        return False
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


@contextmanager
def held(lake: str) -> Iterator[Path]:
    """Hold the lock of a lake's only supervisor; yields the folder of its state, which is this user's alone.

    Raises EvalakeError where there is a supervisor already, or where another user has made the folder.
    """
    folder = make_folder_of(lake)
    folder.chmod(0o700)
    with open_private(folder / "lock", os.O_RDWR | os.O_CREAT) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise EvalakeError(f"servers of the lake {lake} are starting or running already: evalake status") from error
        try:
            _forget_servers(folder)  # of a supervisor that was killed: others may listen at its ports now
            yield folder
        finally:
            _forget_servers(folder)


def _forget_servers(folder: Path) -> None:
    (folder / "up.json").unlink(missing_ok=True)


def lost_supervisor(lake: str) -> int | None:
    """Find the process that keeps servers of a lake, by /proc: also where its state folder is lost or elsewhere."""
    words = b"\0".join([b"-m", MODULE.encode(), whole_address(lake).encode(), b""])
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if process.stat().st_uid == os.geteuid() and words in (process / "cmdline").read_bytes():
                return int(process.name)
    return None


def tell(folder: Path, background: Background) -> None:
    """Write the file by which commands find the servers. A reader never sees half of the file."""
    draft = folder / "up.json.draft"
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(asdict(background), file)
    draft.replace(folder / "up.json")


MODULE, PAGES = "evalake.server.local.supervisor", "pages"
READY = "ready"
LOOPBACK = "127.0.0.1"
START_SECONDS = 300.0  # a busy machine takes minutes; what ends at its start is told at once


def main(lake: str, port: str, project: str) -> int:
    """Keep the servers of a lake until told to end.

    Args:
        lake: The lake's whole address.
        port: The port of the pages; 0 picks a free one.
        project: The folder whose prefect.yaml is deployed; empty for none.

    Returns:
        The exit code, 1 where something did not start.
    """
    over = threading.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: over.set())
    try:
        with held(lake) as folder, ExitStack() as running:
            pages = running.enter_context(listen(LOOPBACK, int(port)))
            prefect = running.enter_context(listen(LOOPBACK, 0))
            servers = _Servers(lake, folder, running, over)
            tell(folder, servers.start(pages, prefect, Path(project) if project else None))
            _say(READY)
            os.dup2(2, 1)  # the command ends now; what comes later is for the log
            over.wait()
    except EvalakeError as error:
        _say(f"evalake: {error}")
        return 1
    return 0


def _say(line: str) -> None:
    sys.stdout.write(f"{on_one_line(line)}\n")
    sys.stdout.flush()


class _Servers:
    """The servers of a lake, started one after the other; the exit stack ends each."""

    def __init__(self, lake: str, folder: Path, running: ExitStack, over: threading.Event) -> None:
        self._lake, self._folder, self._running, self._over = lake, folder, running, over
        self._password, self._token = (secrets.token_urlsafe(24) for _ in range(2))

    def start(self, pages: socket.socket, prefect: socket.socket, project: Path | None) -> Background:
        """Start all servers at their sockets; returns their addresses. Raises EvalakeError where one does not start."""
        from evalake.tasks.runtime.server import LEASES

        home = self._folder / "prefect"  # of its own: two lakes share no queue
        home.mkdir(exist_ok=True, mode=0o700)
        password = f"evalake:{self._password}"
        os.environ.update({"PREFECT_HOME": str(home), PROFILES: str(home / "profiles.toml")})
        os.environ.update({PASSWORD: password, "PREFECT_SERVER_API_AUTH_STRING": password})
        os.environ["PREFECT_SERVER_CORS_ALLOWED_ORIGINS"] = "https://nobody.invalid"
        os.environ.update(LEASES)
        os.environ.update({"EVALAKE_LAKE": self._lake, "EVALAKE_API_TOKEN": self._token})
        _say("starting a Prefect server …")
        os.environ["PREFECT_SERVER_UI_API_URL"] = address = f"{address_of(prefect)}/api"  # for Prefect's own pages
        server = self._child("evalake.server.local.server", str(prefect.fileno()), holding=[prefect])
        os.environ[ADDRESS] = address
        self._wait_for(server, "the Prefect server")
        pools = self._deploy(project) if project else ()
        _say("starting the pages …")
        os.environ.setdefault(VIEWER_URL, address_of(pages))  # for what workers link to
        words = (MODULE, PAGES, str(pages.fileno()), str(prefect.fileno()), self._lake, *pools)
        self._wait_for(self._child(*words, holding=[pages, prefect]), "evalake serve")
        os.environ.update({**PATIENCE, **os.environ})
        for pool in pools:
            self._child("evalake.server.processes", "prefect", "worker", "start", "--pool", pool, holding=[prefect])
        return Background(
            lake=self._lake,
            pid=os.getpid(),
            prefect=address,
            password=password,
            pages=address_of(pages),
            token=self._token,
            pools=pools,
        )

    def _child(self, *words: str, holding: Sequence[socket.socket]) -> Supervised:
        child = Supervised(*words, holding=holding)
        self._running.callback(child.stop)
        return child

    def _wait_for(self, child: Supervised, what: str) -> None:
        child.wait_until_ready(what, START_SECONDS, f"{self._folder / 'up.log'} says why", self._over.is_set)

    def _deploy(self, project: Path) -> tuple[str, ...]:
        """Deploy a project's prefect.yaml; returns the pools that need workers."""
        from evalake.server.local.deployment import pools_of

        _say(f"deploying {project / 'prefect.yaml'} …")
        # Without EVALAKE_HOME, its placeholder stays in the deployments, and the worker puts the folder there.
        environment = {name: value for name, value in os.environ.items() if name != "EVALAKE_HOME"}
        command = [sys.executable, "-P", "-m", "evalake.server.local.deployment", str(project)]
        if subprocess.run(command, cwd=project, env=environment, stdin=subprocess.DEVNULL, stdout=2).returncode:
            raise EvalakeError(f"deploying {project} failed: {self._folder / 'up.log'} says why")
        os.environ["EVALAKE_HOME"] = str(project)
        return pools_of(project)


def serve_pages(descriptor: str, prefect: str, lake: str, *pools: str) -> int:
    """Run `evalake serve` at a socket that the supervisor has bound, until told to stop or until the supervisor ends.

    It also holds the socket of the Prefect server that it asks. The supervisor starts workers of the pools once the
    pages are up. Returns the exit code.
    """
    report_ready = follow_parent()
    try:
        from evalake.server.scoring.scorings import ScoringSettings  # this reads the configuration
        from evalake.server.server import serve_at

        settings = ScoringSettings.of_command(lake, None)
        settings.check()
        with inherited(descriptor) as listener, inherited(prefect):
            host = listener.getsockname()[0]
            serve_at(listener, host, settings, lambda _: report_ready(), workers_to_come=pools)
    except EvalakeError as error:
        sys.stderr.write(f"evalake: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(serve_pages(*sys.argv[2:]) if sys.argv[1] == PAGES else main(*sys.argv[1:]))
