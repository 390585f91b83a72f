"""The process behind `evalake up`: a Prefect server, workers of the deployments, and `evalake serve`, until SIGTERM.

What it does it says on standard output, a line each, to the command that started it; `READY` is the last one. All else
goes to its log. Its children end with it, however it ends (`service/beside.py`).
"""

import os
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Generator, Mapping
from contextlib import ExitStack
from pathlib import Path

import httpx
from typing_extensions import override

from core.errors import EvalakeError
from core.visible_text import on_one_line
from reports.viewer_links import VIEWER_URL
from service.beside import Beside, free_port, lets_in
from service.local.background import ADDRESS, PASSWORD, PATIENCE, Background, held, tell
from service.local.database import start_settings, usual_database
from service.local.deployment import pools_of
from tasks.runtime.prefect_internals import LEASES

READY = "ready"
START_SECONDS = 120.0
LOOK_SECONDS = 0.2


def main(lake: str, port: str, project: str) -> int:
    """Keep the servers of a lake until told to end.

    Args:
        lake: The lake's whole address.
        port: Of the pages; 0 takes a free one.
        project: The folder whose prefect.yaml is deployed; empty for none.

    Returns:
        The exit code, 1 where something did not start.
    """
    over = threading.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: over.set())
    try:
        with held(lake) as folder, ExitStack() as running:
            servers = _Servers(lake, folder, running, over)
            tell(folder, servers.start(int(port) or free_port(), Path(project) if project else None))
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

    def start(self, port: int, project: Path | None) -> Background:
        """Start all servers; returns their addresses. Raises EvalakeError where one does not come up."""
        home = self._folder / "prefect"  # of its own: two lakes share no queue
        home.mkdir(exist_ok=True, mode=0o700)
        password = f"evalake:{self._password}"
        os.environ.update({"PREFECT_HOME": str(home), PASSWORD: password, "PREFECT_SERVER_API_AUTH_STRING": password})
        os.environ["PREFECT_SERVER_CORS_ALLOWED_ORIGINS"] = "https://nobody.invalid"
        os.environ.update(LEASES)
        os.environ.update({"EVALAKE_LAKE": self._lake, "EVALAKE_API_TOKEN": self._token})
        _say("starting a Prefect server …")
        quick = {**os.environ, **start_settings(usual_database())}
        prefect = f"http://127.0.0.1:{(prefect_port := free_port())}/api"
        quick["PREFECT_SERVER_UI_API_URL"] = prefect  # else its pages use the default port
        command = ("prefect", "server", "start", "--host", "127.0.0.1", "--port", str(prefect_port))
        server = self._child(*command, environment=quick)
        os.environ[ADDRESS] = prefect
        deploying = self._begin_to_deploy(project) if project else None
        way_in = httpx.BasicAuth("evalake", self._password)
        self._wait_for(f"{prefect}/admin/version", way_in, server, "the Prefect server")
        pools = self._deploy(project, deploying) if project and deploying else ()
        _say("starting the pages …")
        pages = f"http://127.0.0.1:{port}"
        os.environ.setdefault(VIEWER_URL, pages)  # for what workers link to
        service = self._child("cli", "serve", "--port", str(port), "--lake", self._lake)
        self._wait_for(f"{pages}/api/v1/runs", Bearer(self._token), service, "evalake serve")
        os.environ.update({**PATIENCE, **os.environ})
        for pool in pools:
            self._child("prefect", "worker", "start", "--pool", pool)
        where = {"prefect": prefect, "pages": pages, "pools": pools}
        return Background(lake=self._lake, pid=os.getpid(), password=password, token=self._token, **where)  # type: ignore[arg-type]

    def _child(self, *command: str, environment: Mapping[str, str] | None = None) -> Beside:
        child = Beside(*command, environment=environment)
        self._running.callback(child.stop)
        return child

    def _wait_for(self, url: str, way_in: httpx.Auth, child: Beside, what: str) -> None:
        """Wait until the server lets us in: another user's, which had the port already, would not."""
        for _ in range(round(START_SECONDS / LOOK_SECONDS)):
            if not child.is_running:
                raise EvalakeError(f"{what} ended at its start; why stands in {self._folder / 'up.log'}")
            if lets_in(url, way_in):
                return
            if self._over.wait(LOOK_SECONDS):
                raise EvalakeError("told to end before everything was up")
        raise EvalakeError(f"{what} did not answer within {START_SECONDS:g} seconds: see {self._folder / 'up.log'}")

    def _begin_to_deploy(self, project: Path) -> "subprocess.Popen[bytes]":
        """Start what deploys a project: it imports Prefect while the server does, and waits for a line."""
        # Without EVALAKE_HOME, its placeholder stays in the deployments, and the worker puts the folder there.
        environment = {name: value for name, value in os.environ.items() if name != "EVALAKE_HOME"}
        command = [sys.executable, "-P", "-m", "service.local.deployment", str(project)]
        begun = subprocess.Popen(command, cwd=project, env=environment, stdin=subprocess.PIPE, stdout=2)
        self._running.callback(begun.communicate)  # without a line it ends by itself
        return begun

    def _deploy(self, project: Path, begun: "subprocess.Popen[bytes]") -> tuple[str, ...]:
        """Deploy all of a project's prefect.yaml, now that the server answers; returns the pools to have workers."""
        _say(f"deploying {project / 'prefect.yaml'} …")
        begun.communicate(b"\n")
        if begun.returncode:
            raise EvalakeError(f"deploying {project} failed; why stands in {self._folder / 'up.log'}")
        os.environ["EVALAKE_HOME"] = str(project)
        return pools_of(project)


class Bearer(httpx.Auth):
    """Authentication by the token of `evalake serve`, in the header that it reads."""

    def __init__(self, token: str) -> None:
        self._token = token

    @override
    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        request.headers["authorization"] = f"Bearer {self._token}"
        yield request


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
