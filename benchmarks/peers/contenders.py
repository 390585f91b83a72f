"""The contenders: how each is made to ask a model about the same prompts, as a whole command.

A contender asks through `openai/` form requests, 64 at a time, keeps what it was answered where it usually does, and
scores every answer by whether it blocks; the bare loop only asks.
"""

import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import bare_loop
from benchmarks.command import Ended
from benchmarks.flow_run import BATCH_SIZE, CONCURRENCY
from benchmarks.peers.install import inspect_folder, promptfoo_folder
from benchmarks.place import alone, command
from tests.e2e.processes import ROOT

SERVED = "guard"  # the model's name as the server receives it
MODEL = f"openai/{SERVED}"
KEY = "none"


@dataclass(frozen=True)
class Asked:
    """What is asked, and where: samples as evalake reads them, and the messages of their requests."""

    dataset: Path
    prompts: Path
    api_base: str


class Bare:
    """A loop over LiteLLM, which keeps nothing and scores nothing. It asks the first 64 prompts twice."""

    name = "a bare LiteLLM loop"

    def run(self, place: Path, asked: Asked) -> Ended:
        """Ask every prompt once; files that it keeps stay in `place`."""
        words = [sys.executable, "-m", "benchmarks.bare_loop", str(asked.prompts), MODEL, asked.api_base]
        return command([*words, str(CONCURRENCY)], place, {**bare_loop.ENVIRONMENT, "PYTHONPATH": str(ROOT)})


class Inspect:
    """Inspect, with its log of all samples."""

    name = "Inspect"

    def __init__(self) -> None:
        """Install Inspect where it is missing. Raises NotInstalledError."""
        self._program = inspect_folder() / "bin" / "inspect"

    def run(self, place: Path, asked: Asked) -> Ended:
        """Ask every prompt once; files that it keeps stay in `place`."""
        shutil.copy(Path(__file__).with_name("inspect_task.py"), place / "task.py")
        words = [str(self._program), "eval", "task.py", "--model", f"openai-api/bench/{SERVED}"]
        words += ["--max-connections", str(CONCURRENCY), "--display", "none", "-T", f"file={asked.prompts}"]
        return command(words, place, {"HOME": str(place), "BENCH_BASE_URL": asked.api_base, "BENCH_API_KEY": KEY})


class Promptfoo:
    """promptfoo, with its cache and its database of results."""

    name = "promptfoo"

    def __init__(self) -> None:
        """Install promptfoo where it is missing. Raises NotInstalledError."""
        modules = promptfoo_folder() / "node_modules"
        node = next(modules.glob("node-linux-*/bin/node"))
        self._program = [str(node), str(modules / "promptfoo" / "dist" / "src" / "entrypoint.js")]

    def run(self, place: Path, asked: Asked) -> Ended:
        """Ask the prompts that its cache in `place` does not hold; files that it keeps stay there."""
        prompt, settings = promptfoo_files(asked)
        (place / "prompt.json").write_text(json.dumps(prompt))
        (place / "settings.json").write_text(json.dumps(settings))
        words = [*self._program, "eval", "--config", "settings.json", "--max-concurrency", str(CONCURRENCY)]
        words += ["--no-table", "--no-progress-bar", "--no-share"]
        return command(words, place, {**QUIET, "HOME": str(place), "PROMPTFOO_CONFIG_DIR": str(place / "state")})


# No telemetry, no sharing, and no search for a newer version.
QUIET = {
    "PROMPTFOO_DISABLE_TELEMETRY": "1",
    "PROMPTFOO_DISABLE_UPDATE": "1",
    "PROMPTFOO_DISABLE_REMOTE_GENERATION": "1",
    "PROMPTFOO_DISABLE_SHARING": "1",
}


def promptfoo_files(asked: Asked) -> tuple[object, dict[str, Any]]:
    """Build a prompt whose messages are variables, and settings with a test for each request."""
    conversations = [json.loads(line) for line in asked.prompts.read_text().splitlines()]
    prompt = [{"role": message["role"], "content": f"{{{{m{n}}}}}"} for n, message in enumerate(conversations[0])]
    tests = [{"vars": {f"m{n}": message["content"] for n, message in enumerate(each)}} for each in conversations]
    provider = {"id": f"openai:chat:{SERVED}", "config": {"apiBaseUrl": asked.api_base, "apiKey": KEY}}
    check = {"type": "contains", "value": "BLOCK"}
    return prompt, {
        "prompts": ["file://prompt.json"],
        "providers": [provider],
        "defaultTest": {"assert": [check]},
        "tests": tests,
    }


class Evalake:
    """`evalake run`, with the servers of `evalake up`, or without; they start before and end after what is timed."""

    def __init__(self, *, server_up: bool) -> None:
        self._server_up = server_up
        self.name = f"evalake, server {'up' if server_up else 'not up'}"
        self._program = str(Path(sys.executable).with_name("evalake"))

    def run(self, place: Path, asked: Asked) -> Ended:
        """Ask the prompts that the lake in `place` holds no reply to."""
        (place / "settings.toml").write_text(
            f'batch_size = {BATCH_SIZE}\n[models."{MODEL}"]\napi_base = "{asked.api_base}"\n'
            f"[providers.openai]\nconcurrency = {CONCURRENCY}\n"
        )
        words = ["run", "command_guard", "--models", MODEL, "--dataset", str(asked.dataset), "--lake", "lake"]
        with self._servers(place):
            return self._command(place, *words, "--config", "settings.toml")

    @contextmanager
    def _servers(self, place: Path) -> Iterator[None]:
        if not self._server_up:
            yield
            return
        self._command(place, "up", "--lake", "lake")
        try:
            yield
        finally:
            self._command(place, "down", "--lake", "lake")

    def _command(self, place: Path, *words: str) -> Ended:
        return command([self._program, *words], place, {**alone(place), "OPENAI_API_KEY": KEY})
