"""A lake whose servers are up as far as commands look, with the warm process beside them; and what a worker is."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from service.local.background import WARM, Background, held, tell
from tests.cli.command import ROOT, WIDTH
from tests.e2e.processes import wait_until

# Starts the warm process of its flow runs, and says how each is started.
WORKER = """
import os
import sys
from cli.warm.flow_runs import WarmFlowRuns
print(WarmFlowRuns().command(dict(os.environ)), flush=True)
sys.stdin.read()
"""


@dataclass(frozen=True)
class Warm:
    """The warm process of a lake, and how a user is placed who has it."""

    process: psutil.Process
    folder: Path  # in which the user works, with the lake in it
    socket: Path
    environment: dict[str, str]

    def start(self, *words: str, **environment: str) -> "subprocess.Popen[str]":
        """Start a command of the user's."""
        return subprocess.Popen(
            [sys.executable, "-m", "cli", *words],
            cwd=self.folder,
            env={**self.environment, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str, **environment: str) -> tuple[int, str, str]:
        """Run a command to its end: exit code, standard output and standard error."""
        process = self.start(*words, **environment)
        out, err = process.communicate(timeout=300)
        return process.returncode, out, err

    def copies(self) -> list[psutil.Process]:
        """The copies that carry out commands now."""
        there = []
        for keeper in self.process.children():
            with suppress(psutil.NoSuchProcess):  # one that ended while it was looked at
                there += [copy for copy in keeper.children() if copy.status() != psutil.STATUS_ZOMBIE]
        return there


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warm]:
    state, folder = tmp_path_factory.mktemp("state"), tmp_path_factory.mktemp("user")
    lake = str(folder / "lake")
    environment = {**os.environ, **WIDTH, "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(state), "EVALAKE_LAKE": lake}
    environment.pop("PREFECT_API_URL", None)
    background = Background(
        lake=lake,
        pid=os.getpid(),
        prefect="http://127.0.0.1:9/api",
        password="evalake:none",
        pages="http://127.0.0.1:9",
        token="none",
        pools=(),
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_STATE_HOME", str(state))
        with held(lake) as place:
            tell(place, background)
            log = (place / "log").open("w")
            command = [sys.executable, "-P", "-m", "cli.warm.process", lake]
            with log, subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stderr=log) as process:
                there = place / WARM
                wait_until(there.exists, "the warm process's socket")
                yield Warm(psutil.Process(process.pid), folder, there, environment)
                process.terminate()
    assert (place / "log").read_text() == ""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """An environment whose Prefect server takes connections, and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield {
            **os.environ,
            "PREFECT_API_URL": f"http://127.0.0.1:{server.getsockname()[1]}/api",
            "PREFECT_HOME": str(tmp_path_factory.mktemp("home")),
            "PYTHONPATH": os.pathsep.join([str(ROOT / "cli" / "startup"), str(ROOT)]),
            "TMPDIR": str(tmp_path_factory.mktemp("temporary")),
        }
