"""Where a benchmark runs: a folder that is gone afterwards, and servers and runs in processes of their own."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx

from benchmarks.command import Ended
from benchmarks.material import ANSWER
from evalake.cli.terminal import DEFAULTS
from evalake.server.local.server import is_migrated
from tests.e2e.processes import ROOT, PrefectStack


@contextmanager
def folder() -> Iterator[Path]:
    """Make an empty folder, and remove it afterwards."""
    with TemporaryDirectory(prefix="evalake-bench-") as name:
        yield Path(name)


@contextmanager
def prefect_server(place: Path) -> Iterator[Mapping[str, str]]:
    """Run a Prefect server; yields the environment by which runs find it."""
    with PrefectStack(place / "prefect") as stack:
        yield stack.environment


@contextmanager
def model_server(latency_seconds: float = 0.0) -> Iterator[str]:
    """Run a model server that answers at once, or after `latency_seconds`; yields its API base."""
    rule = {"reply": ANSWER, "latency": latency_seconds}
    command = [sys.executable, "-m", "tests.servers.model_server", "--rules", json.dumps([rule])]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip() + "/v1"
    finally:
        process.terminate()
        process.communicate()


def seconds_of_calls(api_base: str, calls: int) -> float:
    """Compute the seconds from the first of the last `calls` requests to the last answer, by the server's clock."""
    requests = httpx.get(api_base.removesuffix("/v1") + "/_requests", timeout=60).json()[-calls:]
    return float(max(each["ended"] for each in requests) - min(each["started"] for each in requests))


def alone(place: Path) -> Mapping[str, str]:
    """Build the environment of a command that finds no server up; it and Prefect keep their state in `place`.

    The database of Prefect is made, as after a first command.
    """
    is_migrated(place / "prefect" / "prefect.db")
    return {"PREFECT_API_URL": "", "PREFECT_HOME": str(place / "prefect"), "XDG_STATE_HOME": str(place / "state")}


def command(words: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Ended:
    """Run a whole command in a folder, and return what it took; raises RuntimeError where it fails."""
    log = folder / "command.log"
    ended = Ended(**child("command", [str(log), *words], environment))
    if ended.code:
        raise RuntimeError(f"{words[0]} ended with {ended.code}:\n{log.read_text(errors='replace')[-4000:]}")
    return ended


def child(module: str, arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> Any:
    """Run a module of this package to its end, and return the JSON of the last line it printed."""
    command = [sys.executable, "-m", f"benchmarks.{module}", *arguments]
    whole = {**DEFAULTS, **os.environ, **(environment or {})}  # as the command has it
    done = subprocess.run(command, cwd=ROOT, env=whole, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])
