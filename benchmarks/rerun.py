"""Rerun: samples a second of a run whose every reply is in the ledger, and its time over a Polars scan of the replies.

A run counts from its flow's body to its snapshot. Runs and scans take turns; each run has a lake of its own, with a
copy of the same ledger.
"""

import shutil
import time
from pathlib import Path
from statistics import median

import polars as pl

from benchmarks import flow_run
from benchmarks.material import remember, requests, write_commands
from benchmarks.measure import Measure, report, say
from benchmarks.place import folder, prefect_server
from evalake.contracts.tables import CALLS
from evalake.storage.lake import Lake

SAMPLES = 200_000
ROUNDS = 3
MODEL = "baseline/always-block"  # reachable without a server; it is never asked


def main() -> None:
    """Put every reply into the ledger, time scans and runs in turns, and report the medians."""
    scans, runs = [], []
    with folder() as place, prefect_server(place) as environment:
        dataset = write_commands(place / "commands.jsonl", SAMPLES)
        remember(Lake(str(place / "ledger")), requests(dataset, MODEL))
        _scan(place / "ledger")
        for number in range(ROUNDS):
            scans.append(_scan(place / "ledger"))
            shutil.copytree(place / "ledger", place / str(number) / "lake")
            runs.append(flow_run.run(place / str(number), dataset, MODEL, environment).seconds)
            say(f"run {runs[-1]:.2f} s, scan {scans[-1]:.2f} s")
            shutil.rmtree(place / str(number))
    seconds, scan = median(runs), median(scans)
    over = median(run / scanned for run, scanned in zip(runs, scans, strict=True))
    behind = f"{SAMPLES:,} samples in {seconds:.2f} s; median of {ROUNDS}"
    report(
        [
            Measure("rerun from the ledger", SAMPLES / seconds, 20_000, True, "samples/s", behind),
            Measure("... over a scan of its replies", over, 10, False, "x", f"{behind}, a scan {scan:.2f} s"),
        ]
    )


def _scan(lake: Path) -> float:
    """Measure the seconds in which Polars reads every column of the ledger."""
    started = time.perf_counter()
    rows = pl.scan_delta(Lake(str(lake)).location(CALLS)).collect().height
    assert rows == SAMPLES
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
