"""Overhead: what a whole command takes beyond its flow's body, and the most memory it holds, at 200,000 known samples.

Nothing is up before it: it starts a Prefect server for itself. Each round has a copy of the same lake.
"""

import shutil
import sys
from pathlib import Path
from statistics import median

from benchmarks.command import Ended
from benchmarks.material import remember, requests, write_commands
from benchmarks.measure import Measure, report, say
from benchmarks.place import alone, command, folder
from evalake.contracts.tables import RUNS
from evalake.storage.lake import Lake

SAMPLES = 200_000
ROUNDS = 3
MODEL = "baseline/always-block"  # reachable without a server; it is never asked


def main() -> None:
    """Run whole commands over a ledger that holds every reply, and report the medians."""
    beyond, peaks, whole = [], [], []
    with folder() as place:
        dataset = write_commands(place / "commands.jsonl", SAMPLES)
        remember(Lake(str(place / "ledger")), requests(dataset, MODEL))
        for number in range(ROUNDS):
            here = place / str(number)
            shutil.copytree(place / "ledger", here / "lake")
            ended, body = _run(here, dataset)
            shutil.rmtree(here)
            whole.append(ended.seconds)
            beyond.append(ended.seconds - body)
            peaks.append(ended.peak_bytes / 2**20)
            say(f"whole command {ended.seconds:.1f} s, {body:.1f} s of it the flow's body, {peaks[-1]:.0f} MiB")
    behind = f"{median(whole):.1f} s in all, {SAMPLES:,} samples; median of {ROUNDS}"
    report(
        [
            Measure("a whole command beyond its flow body", median(beyond), 5.0, False, "s", behind),
            Measure("... its peak memory", median(peaks), 700, False, "MiB", behind),
        ]
    )


def _run(here: Path, dataset: Path) -> tuple[Ended, float]:
    """Run a whole command; returns what it took, and the seconds of its flow's body."""
    program = str(Path(sys.executable).with_name("evalake"))
    words = [program, "run", "command_guard", "--models", MODEL, "--dataset", str(dataset), "--lake", "lake"]
    ended = command(words, here, alone(here))
    (run,) = Lake(str(here / "lake")).frame(RUNS).collect().iter_rows(named=True)
    assert run["calls_made"] == 0
    return ended, (run["ended_at"] - run["started_at"]).total_seconds()


if __name__ == "__main__":
    main()
