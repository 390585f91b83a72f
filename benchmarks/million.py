"""A million samples through a model server on this machine: by calls, again from the ledger, and by batch jobs.

Whole commands with nothing up before them. By calls and by jobs, a command is killed once by SIGKILL on its way and
started again. `python -m benchmarks.million 100000` takes fewer samples. Prints the table of docs/scale.md.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl
import psutil

from benchmarks.material import ANSWER, write_commands
from benchmarks.measure import say
from benchmarks.place import alone, folder
from evalake.contracts.tables import CALLS
from evalake.storage.lake import Lake
from evalake.suites.command_guard.contract import RESULTS
from tests.e2e.processes import ROOT
from tests.servers.model_server import ModelServer

FEW, MANY = 10_000, 1_000_000
PROGRAM = [str(Path(sys.executable).with_name("evalake")), "run", "command_guard", "--models", "hosted_vllm/guard"]
FILES = ["--dataset", "commands.jsonl", "--config", "evalake.toml", "--lake", "lake"]
CONFIGURATION = """[models."hosted_vllm/guard"]
api_base = "{}"
price = {{ input = 0.15, output = 0.60, batch = 0.5 }}

[providers.hosted_vllm]
concurrency = 64
"""


@dataclass
class Taken:
    """What the commands of one order took, and what the server counted."""

    commands: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_bytes: int = 0
    codes: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Order:
    """An order of so many samples, in a lake of its own."""

    place: Path
    samples: int
    server: ModelServer

    @property
    def lake(self) -> Lake:
        """The lake."""
        return Lake(str(self.place / "lake"))

    def prepare(self) -> None:
        """Write its dataset and configuration."""
        self.place.mkdir()
        write_commands(self.place / "commands.jsonl", self.samples)
        (self.place / "evalake.toml").write_text(CONFIGURATION.format(self.server.api_base))

    def command(self, taken: Taken, *more: str, until: Callable[[], bool] = lambda: False) -> int:
        """Run the command to its end, or kill it as soon as `until`; returns its exit code, negative if killed."""
        log = self.place / "command.log"
        measuring = [sys.executable, "-m", "benchmarks.command", str(log), *PROGRAM, *FILES, *more]
        started = time.perf_counter()
        with subprocess.Popen(
            measuring, cwd=ROOT, env={**os.environ, **alone(self.place)}, stdout=subprocess.PIPE
        ) as it:
            while it.poll() is None and not until():
                time.sleep(0.2)
            if it.poll() is None:
                (process,) = psutil.Process(it.pid).children()
                process.kill()
            said = it.stdout.read() if it.stdout else b""
        ended = json.loads(said)
        taken.commands += 1
        taken.seconds += time.perf_counter() - started
        taken.cpu_seconds += ended["cpu_seconds"]
        taken.peak_bytes = max(taken.peak_bytes, ended["peak_bytes"])
        taken.codes.append(ended["code"])
        return int(ended["code"])

    def line(self, name: str, taken: Taken, scan: float) -> str:
        """Say in one line what it took, and check that every sample has one reply and one result."""
        replies = self.lake.frame(CALLS).select("prompt_hash", "cost_usd").collect()
        results = self.lake.frame(RESULTS).select(pl.len()).collect().item()
        assert replies.height == replies["prompt_hash"].n_unique() == results == self.samples
        jobs = self.server.batches
        asked, in_jobs = len(self.server.seen), sum(jobs.paid.values())
        return (
            f"| {name} | {self.samples:,} | {taken.seconds:,.0f} | {taken.cpu_seconds:,.0f} | "
            f"{taken.peak_bytes / 2**20:,.0f} | {asked:,} | {in_jobs:,} | {asked + in_jobs - self.samples:,} | "
            f"{replies['cost_usd'].sum():,.2f} | {taken.seconds / scan:,.0f} | {taken.codes} |"
        )


def main(many: int = MANY) -> None:
    """Run both orders at both sizes, and print a line for each."""
    say("| | samples | seconds | CPU s | MiB | calls | in jobs | paid twice | USD | over a scan | exit codes |")
    say("|---|---|---|---|---|---|---|---|---|---|---|")
    for samples in (FEW, many):
        for name in ("calls", "jobs"):
            with folder() as place, ModelServer(keep_bodies=False) as server:
                server.rule(reply=ANSWER)
                server.batches.repeats = False
                order = Order(place / "order", samples, server)
                order.prepare()
                measure(order, name)


def measure(order: Order, name: str) -> None:
    """Run one order, killed once, and then once more from the ledger."""
    first, server = Taken(), order.server
    if name == "calls":
        order.command(first, until=lambda: len(server.seen) > order.samples // 3)
        order.command(first)
    else:
        order.command(first, "--batch", until=lambda: len(server.batches.jobs) > order.samples // 100_000)
        while order.command(first, "--batch") == 3:
            pass
    scan = _scan(order.lake)
    say(order.line(f"by {name}", first, scan))
    again = Taken()
    order.command(again)
    say(order.line(f"by {name}, again", again, scan))


def _scan(lake: Lake) -> float:
    """Measure the seconds in which Polars reads every column of the ledger, the files being in the page cache."""
    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        pl.scan_delta(lake.location(CALLS)).collect()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
