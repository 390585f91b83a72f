"""Landing: the time to append a thousand replies to a ledger of ten million rows, over one of ten thousand."""

import time
from pathlib import Path
from statistics import median

from benchmarks.material import fill, rows_of
from benchmarks.measure import Measure, report, say
from benchmarks.place import folder
from evalake.contracts.tables import CALLS
from evalake.storage import ledger
from evalake.storage.lake import Lake

SMALL, LARGE = 10_000, 10_000_000
REPLIES = 1_000
ROUNDS = 15


def main() -> None:
    """Append to both ledgers in turns, and report the ratio of the medians."""
    with folder() as place:
        lakes = {size: _ledger(place, size) for size in (SMALL, LARGE)}
        tables = {size: lake.open(CALLS) for size, lake in lakes.items()}  # as the ledger's writer keeps it
        seconds: dict[int, list[float]] = {size: [] for size in lakes}
        for number in range(ROUNDS):
            for size, lake in lakes.items():
                rows = rows_of(range(size + number * REPLIES, size + (number + 1) * REPLIES))
                started = time.perf_counter()
                ledger.append(lake, rows, tables[size])
                seconds[size].append(time.perf_counter() - started)
    small, large = (median(seconds[size]) for size in (SMALL, LARGE))
    behind = f"{large * 1000:.0f} ms into {LARGE:,} rows, {small * 1000:.0f} ms into {SMALL:,}; medians of {ROUNDS}"
    report([Measure(f"landing {REPLIES:,} replies", large / small, 1.5, False, "x", behind)])


def _ledger(place: Path, size: int) -> Lake:
    say(f"filling a ledger of {size:,} rows")
    lake = Lake(str(place / str(size)))
    fill(lake, size)
    return lake


if __name__ == "__main__":
    main()
