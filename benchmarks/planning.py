"""Planning: the time to find which of a thousand requests a ledger of ten million knows, over a scan of its keys."""

import time
from collections.abc import Callable
from statistics import median

import polars as pl

from benchmarks.material import fill, request
from benchmarks.measure import Measure, report, say
from benchmarks.place import folder
from contracts.tables import CALLS
from storage.lake import Lake
from storage.ledger import KEY, Key, LedgerIndex

ROWS = 10_000_000
REQUESTS = 1_000
ROUNDS = 7


def main() -> None:
    """Plan requests of which all, none, or every other one is known, in turns with the scan, and report the ratios."""
    with folder() as place:
        lake = Lake(str(place / "lake"))
        say(f"filling a ledger of {ROWS:,} rows")
        fill(lake, ROWS)
        known = [(request(number).prompt_hash, 0) for number in range(0, ROWS, ROWS // REQUESTS)]
        new = [(request(number).prompt_hash, 0) for number in range(ROWS, ROWS + REQUESTS)]
        steps: dict[str, Callable[[], object]] = {
            "scan": lambda: pl.scan_delta(lake.location(CALLS)).select(KEY).collect(),
            "none known": lambda: _plan(lake, new, 0),
            "all known": lambda: _plan(lake, known, REQUESTS),
        }
        seconds = {name: median(times) for name, times in _in_turns(steps).items()}
    scan = seconds.pop("scan")
    report(
        [
            Measure(
                f"planning {REQUESTS:,} requests, {name}",
                taken / scan,
                3.0,
                False,
                "x",
                f"{taken * 1000:.0f} ms, one scan of the keys of {ROWS:,} rows {scan * 1000:.0f} ms",
            )
            for name, taken in seconds.items()
        ]
    )


def _plan(lake: Lake, keys: list[Key], expected: int) -> None:
    assert len(LedgerIndex.read(lake).fetch(keys)) == expected


def _in_turns(steps: dict[str, Callable[[], object]]) -> dict[str, list[float]]:
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(ROUNDS):
        for name, step in steps.items():
            started = time.perf_counter()
            step()
            seconds[name].append(time.perf_counter() - started)
    return seconds


if __name__ == "__main__":
    main()
