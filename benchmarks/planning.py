"""Planning: finding which of a thousand requests a ledger of ten million knows, in time over a scan."""

import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import polars as pl

from benchmarks.material import fill, request
from benchmarks.measure import Measure, report, say
from benchmarks.place import folder
from evalake.contracts.tables import CALLS
from evalake.core.configuration import PROVIDER
from evalake.storage.lake import Lake
from evalake.storage.ledger import KEY, Key, LedgerIndex

ROWS = 10_000_000
REQUESTS = 1_000
ROUNDS = 7


def main() -> None:
    """Plan requests of which all or none are known, in turns with the scan."""
    with folder() as place:
        lake = Lake(str(place / "lake"))
        say(f"filling a ledger of {ROWS:,} rows")
        fill(lake, ROWS)
        report(_times(lake))


def _times(lake: Lake) -> list[Measure]:
    known = [Key(request(number).prompt_hash, 0, PROVIDER) for number in range(0, ROWS, ROWS // REQUESTS)]
    new = [Key(request(number).prompt_hash, 0, PROVIDER) for number in range(ROWS, ROWS + REQUESTS)]
    steps: dict[str, Callable[[], object]] = {
        "scan": lambda: pl.scan_delta(lake.location(CALLS)).select(KEY).collect(),
        "none known": lambda: _plan(lake, new, 0),
        "all known": lambda: _plan(lake, known, REQUESTS),
    }
    seconds = {name: median(times) for name, times in _in_turns(steps).items()}
    scan = seconds.pop("scan")
    return [
        Measure(
            f"planning {REQUESTS:,} requests, {name}",
            taken / scan,
            4.0,
            False,
            "x",
            f"{taken * 1000:.0f} ms, one scan of the keys of {ROWS:,} rows {scan * 1000:.0f} ms",
        )
        for name, taken in seconds.items()
    ]


def size_of(place: Path) -> int:
    """Add up the bytes of all files in a folder."""
    return sum(file.stat().st_size for file in place.rglob("*") if file.is_file())


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
