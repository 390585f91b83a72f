"""The process behind `evalake up`: a Prefect server, workers of the deployments, and `evalake serve`, until SIGTERM.

It binds the ports of both servers before it starts them, and holds them until all its children have ended, so that
nobody else can ever listen there. Children inherit the sockets, restarted ones too, and report readiness over a line
that only they have. What it does it says on standard output, a line each, to the command that started it; `READY` is
the last one. All else goes to its log. Its children end with it, however it ends (`evalake/server/processes.py`).
"""

import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from evalake.core.configuration import VIEWER_URL
from evalake.core.errors import EvalakeError
from evalake.core.prefect_settings import PROFILES
from evalake.core.redaction import on_one_line
from evalake.server.local.background import ADDRESS, PASSWORD, PATIENCE, Background, held, tell
from evalake.server.local.deployment import pools_of
from evalake.server.processes import Supervised, address_of, listen
from evalake.tasks.runtime.server import LEASES

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
        words = ("evalake.server.local.pages", str(pages.fileno()), str(prefect.fileno()), self._lake, *pools)
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
        _say(f"deploying {project / 'prefect.yaml'} …")
        # Without EVALAKE_HOME, its placeholder stays in the deployments, and the worker puts the folder there.
        environment = {name: value for name, value in os.environ.items() if name != "EVALAKE_HOME"}
        command = [sys.executable, "-P", "-m", "evalake.server.local.deployment", str(project)]
        if subprocess.run(command, cwd=project, env=environment, stdin=subprocess.DEVNULL, stdout=2).returncode:
            raise EvalakeError(f"deploying {project} failed: {self._folder / 'up.log'} says why")
        os.environ["EVALAKE_HOME"] = str(project)
        return pools_of(project)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
