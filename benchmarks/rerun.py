"""Rerun: whole commands of a run whose every reply is in the ledger, over a Polars scan of the replies.

Commands and scans take turns; each command has a lake of its own, with a copy of the same ledger, and nothing is up
before it: it starts a Prefect server for itself. What it takes beyond its flow's body is held against a Python that
imports the libraries of a run.
"""

import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

import polars as pl

from benchmarks.command import Ended
from benchmarks.material import remember, requests, write_commands
from benchmarks.measure import Measure, report, say
from benchmarks.place import alone, command, folder
from evalake.contracts.tables import CALLS, RUNS
from evalake.core.configuration import IN_PROCESS
from evalake.storage.lake import Lake

SAMPLES = 200_000
ROUNDS = 3
MODEL = "baseline/always-block"  # reachable without a server; it is never asked
LIBRARIES = "import prefect.flow_engine, prefect.task_engine, polars, deltalake, litellm"


def main() -> None:
    """Put every reply into the ledger, time scans, imports and commands in turns, and report the medians."""
    rounds = []
    with folder() as place:
        dataset = write_commands(place / "commands.jsonl", SAMPLES)
        remember(Lake(str(place / "ledger")), requests(dataset, MODEL), IN_PROCESS)
        _scan(place / "ledger")
        for number in range(ROUNDS):
            here = place / str(number)
            shutil.copytree(place / "ledger", here / "lake")
            known = {"scan": _scan(place / "ledger"), "imports": _imports(here)}
            ended, body = _run(here, dataset)
            shutil.rmtree(here)
            rounds.append({**known, "body": body, "beyond": ended.seconds - body, "peak": ended.peak_bytes / 2**20})
            say(", ".join(f"{name} {value:.2f}" for name, value in rounds[-1].items()))
    middle = {name: median(each[name] for each in rounds) for name in rounds[0]}
    behind = (
        f"{SAMPLES / middle['body']:,.0f} samples/s, a scan {middle['scan']:.2f} s, {middle['peak']:.0f} MiB; "
        f"median of {ROUNDS}"
    )
    beyond = f"{middle['beyond']:.1f} s, imports alone {middle['imports']:.1f} s"
    report(
        [
            Measure("rerun over a scan of its replies", _over(rounds, "body", "scan"), 25, False, "x", behind),
            Measure("... beyond its body, over imports", _over(rounds, "beyond", "imports"), 3, False, "x", beyond),
        ]
    )


def _over(rounds: Sequence[Mapping[str, float]], name: str, reference: str) -> float:
    return median(each[name] / each[reference] for each in rounds)


def _imports(here: Path) -> float:
    return command([sys.executable, "-c", LIBRARIES], here, alone(here)).seconds


def _run(here: Path, dataset: Path) -> tuple[Ended, float]:
    """Run a whole command; returns what it took, and the seconds of its flow's body."""
    program = str(Path(sys.executable).with_name("evalake"))
    words = [program, "run", "command_guard", "--models", MODEL, "--dataset", str(dataset), "--lake", "lake"]
    ended = command(words, here, alone(here))
    (run,) = Lake(str(here / "lake")).frame(RUNS).collect().iter_rows(named=True)
    assert run["calls_made"] == 0
    return ended, (run["ended_at"] - run["started_at"]).total_seconds()


def _scan(lake: Path) -> float:
    """Measure the seconds in which Polars reads every column of the ledger."""
    started = time.perf_counter()
    rows = pl.scan_delta(Lake(str(lake)).location(CALLS)).collect().height
    assert rows == SAMPLES
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
