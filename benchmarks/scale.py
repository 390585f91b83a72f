"""Scale: what grows with the ledger, at ten thousand rows to ten million; the table behind docs/scale.md.

Processor seconds of a process that does one thing: they stay the same on a machine that does other things, too.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.material import fill, rows_of
from benchmarks.measure import report, say
from benchmarks.place import child, folder
from benchmarks.planning import size_of
from evalake.contracts.tables import CALLS, CORE_CONTRACTS
from evalake.storage import ledger
from evalake.storage.integrity import inspect
from evalake.storage.lake import Lake
from evalake.storage.ledger import LedgerIndex
from evalake.storage.sql.query import query

MEGABYTE = 2**20
SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
REPLIES = 1_000
COMMITS = (100, 1_000, 10_000, 100_000)

_FILE = {
    **{"partitionValues": {}, "size": 2**20, "modificationTime": 1_700_000_000_000, "dataChange": True},
    "stats": json.dumps({"numRecords": 10_000, "minValues": {"replicate": 0}, "maxValues": {"replicate": 0}}),
}


def main() -> None:
    """Fill a ledger of each size, do each step once in it, and print a table; then open logs of many entries."""
    with folder() as place:
        for size in SIZES:
            lake = Lake(str(place / str(size)))
            fill(lake, size)
            told = {"rows": size, "ledger MB": size_of(Path(lake.uri)) / MEGABYTE}
            told["index"] = child("scale", [lake.uri, "index"])["cpu"]
            for name, first, step in (("none", size, 1), ("one run", size // 3, 1), ("all over", 0, size // REPLIES)):
                planned = child("planned", [lake.uri, str(first), str(step), str(REPLIES)])
                told |= {f"plan, {name}": planned["cpu"], f"MB, {name}": planned["bytes"] / MEGABYTE}
            told |= {name: child("scale", [lake.uri, name])["cpu"] for name in STEPS if name != "index"}
            say("  ".join(f"{name} {value:,.3f}" for name, value in told.items()))
        for commits in COMMITS:
            lake = Lake(str(place / f"log{commits}"))
            _lengthen(lake, commits)
            told = {name: child("scale", [lake.uri, name])["cpu"] for name in ("open", "list files", "checkpoint")}
            say(f"a log of {commits:,} entries, each with a file: {told}")
    report([])


def _lengthen(lake: Lake, commits: int) -> None:
    """Add entries to the ledger's log, each with a file that is not there, and a checkpoint after them."""
    log = Path(lake.location(CALLS)) / "_delta_log"
    first = lake.ensure(CALLS).version() + 1
    for version in range(first, first + commits):
        (log / f"{version:020}.json").write_text(json.dumps({"add": _FILE | {"path": f"part-{version}.parquet"}}))
    lake.open(CALLS).create_checkpoint()


def _land(lake: Lake) -> None:
    ledger.append(lake, rows_of(range(10**9, 10**9 + REPLIES)), lake.open(CALLS))


STEPS: dict[str, Callable[[Lake], object]] = {
    "index": LedgerIndex.read,
    "open": lambda lake: lake.open(CALLS),
    "list files": lambda lake: set(lake.open(CALLS).file_uris()),
    "checkpoint": lambda lake: lake.open(CALLS).create_checkpoint(),
    "look for damage": lambda lake: inspect(lake, CALLS),
    "land": _land,
    "select 1": lambda lake: query(lake, CORE_CONTRACTS, "select 1"),
    "replies limit 5": lambda lake: query(lake, CORE_CONTRACTS, "select * from replies limit 5"),
    "cost by day": lambda lake: query(lake, CORE_CONTRACTS, "select * from cost_by_model_and_day"),
}


def step(uri: str, name: str) -> None:
    """Do one step, and print the processor seconds that it takes, its query's process included."""
    before, started = os.times(), time.perf_counter()
    STEPS[name](Lake(uri))
    taken = sum(os.times()[:4]) - sum(before[:4])
    print(json.dumps({"cpu": taken, "seconds": time.perf_counter() - started}))


if __name__ == "__main__":
    if sys.argv[1:]:
        step(*sys.argv[1:])
    else:
        main()
