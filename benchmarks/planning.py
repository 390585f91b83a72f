"""Planning and landing at ten million replies, over a scan of the ledger's keys and over a small ledger.

Planning finds which of a thousand requests the ledger knows. Landing appends a thousand replies, as the ledger's
writer does it, which keeps the table open.
"""

import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from statistics import median

import polars as pl

from benchmarks.material import fill, request, rows_of
from benchmarks.measure import Measure, report, say
from benchmarks.place import folder
from evalake.contracts.tables import CALLS
from evalake.core.configuration import PROVIDER
from evalake.storage import ledger
from evalake.storage.lake import Lake
from evalake.storage.ledger import KEY, Key, LedgerIndex

SMALL, ROWS = 10_000, 10_000_000
REQUESTS = 1_000
ROUNDS = 7


def main() -> None:
    """Plan requests of which all or none are known, in turns with the scan."""
    with folder() as place:
        lakes = {size: Lake(str(place / str(size))) for size in (SMALL, ROWS)}
        for size, lake in lakes.items():
            say(f"filling a ledger of {size:,} rows")
            fill(lake, size)
        report([*_times(lakes[ROWS]), _landing(lakes)])


def _landing(lakes: Mapping[int, Lake]) -> Measure:
    tables = {size: lake.open(CALLS) for size, lake in lakes.items()}
    number = iter(range(2 * ROWS, 3 * ROWS, REQUESTS))

    def land(size: int) -> None:
        first = next(number)
        ledger.append(lakes[size], rows_of(range(first, first + REQUESTS)), tables[size])

    times = _in_turns({str(size): partial(land, size) for size in lakes})
    small, large = (median(times[str(size)]) for size in lakes)
    behind = f"{large * 1000:.0f} ms into {ROWS:,} rows, {small * 1000:.0f} ms into {SMALL:,}; medians of {ROUNDS}"
    return Measure(f"landing {REQUESTS:,} replies", large / small, 1.5, False, "x", behind)


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
