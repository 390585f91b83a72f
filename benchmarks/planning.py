"""Planning: finding which of a thousand requests a ledger of ten million knows, in time over a scan, and in bytes."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import polars as pl

from benchmarks.material import fill, request
from benchmarks.measure import Measure, report, say
from benchmarks.place import child, folder
from contracts.tables import CALLS
from core.private_folders import CACHE, cache_folder
from storage.lake import Lake
from storage.ledger import KEY, Key, LedgerIndex

ROWS = 10_000_000
REQUESTS = 1_000
ROUNDS = 7
MEGABYTE = 2**20


def main() -> None:
    """Plan requests of which all or none are known, in turns with the scan, and count the bytes read from the disk."""
    with folder() as place:
        os.environ[CACHE] = str(place / "cache")
        lake = Lake(str(place / "lake"))
        say(f"filling a ledger of {ROWS:,} rows")
        fill(lake, ROWS)
        started = time.perf_counter()
        LedgerIndex.read(lake)
        made = (
            f"the index has {size_of(cache_folder()) / MEGABYTE:.0f} MB, made in {time.perf_counter() - started:.1f} s"
        )
        report([*_times(lake), *_bytes(lake, made)])


def _times(lake: Lake) -> list[Measure]:
    known = [(request(number).prompt_hash, 0) for number in range(0, ROWS, ROWS // REQUESTS)]
    new = [(request(number).prompt_hash, 0) for number in range(ROWS, ROWS + REQUESTS)]
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
            3.0,
            False,
            "x",
            f"{taken * 1000:.0f} ms, one scan of the keys of {ROWS:,} rows {scan * 1000:.0f} ms",
        )
        for name, taken in seconds.items()
    ]


def _bytes(lake: Lake, made: str) -> list[Measure]:
    """Measure the bytes read from disk, index included, as a share of the ledger; a run's replies lie side by side."""
    ledger = size_of(Path(lake.location(CALLS)))
    read = {
        "none known": child("planned", [lake.uri, str(ROWS), "1", str(REQUESTS)]),
        "all known, of one run": child("planned", [lake.uri, str(ROWS // 3), "1", str(REQUESTS)]),
    }
    scattered = child("planned", [lake.uri, "0", str(ROWS // REQUESTS), str(REQUESTS)])
    behind = (
        f"of {ledger / MEGABYTE:.0f} MB; all known of runs all over it: {scattered['bytes'] / MEGABYTE:.0f} MB; {made}"
    )
    assert [each["known"] for each in (*read.values(), scattered)] == [0, REQUESTS, REQUESTS]
    return [
        Measure(
            f"bytes read to plan, {name}",
            each["bytes"] / ledger if scattered["bytes"] else None,
            0.01,
            False,
            "x",
            f"{each['bytes'] / MEGABYTE:.1f} MB {behind}" if scattered["bytes"] else "the files are on no disk",
        )
        for name, each in read.items()
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
