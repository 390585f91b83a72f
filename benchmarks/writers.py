"""Writers: what sixteen processes land in one lake on an object store in a minute, over what one process lands.

Each appends replies to the ledger and lands rows in a table, in turns. Afterwards each acknowledged row is there once.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable

import polars as pl

from benchmarks.measure import Measure, report, say
from evalake.contracts.tables import CALLS
from evalake.core.errors import LakeError
from evalake.storage import ledger
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from tests.integration.storage.rows import TOYS, call, toy

PROCESSES = {1: 20.0, 16: 60.0}  # and the seconds that they write
ROWS = 300  # of a commit, as the ledger's writer has it


def main() -> None:
    """Write with one process and with sixteen, each into a lake of its own."""
    from benchmarks.place import folder
    from tests.e2e.buckets import bucket_of

    rates, measures = [], []
    with folder() as place, bucket_of(place) as bucket:
        for processes, seconds in PROCESSES.items():
            lake = Lake(f"s3://lake/{processes}", bucket.options)
            for contract in (CALLS, TOYS):
                lake.ensure(contract)
            done = _write(lake, processes, seconds)
            rows, commits, refused = (sum(each[name] for each in done) for name in ("rows", "commits", "refused"))
            rates.append(rows / seconds)
            slowest = max(each["slowest"] for each in done)
            behind = (
                f"{rates[-1]:,.0f} rows/s in {commits:,} commits, {refused} refused after two minutes of conflicts; "
                f"the longest took {slowest:.1f} s"
            )
            say(f"{processes} processes: {behind}")
            measures.append(
                Measure(f"rows lost or twice, {processes} writers", _wrong(lake, rows), 0, False, "rows", behind)
            )
    report([*measures, Measure("sixteen writers over one", rates[1] / rates[0], 0.5, True, "x", behind)])


def _write(lake: Lake, processes: int, seconds: float) -> list[dict[str, float]]:
    words = [sys.executable, "-m", "benchmarks.writers", lake.uri, json.dumps(dict(lake.storage_options))]
    end = str(time.time() + 5 + processes + seconds)
    running = [
        subprocess.Popen([*words, str(number), str(seconds), end], stdout=subprocess.PIPE, text=True)
        for number in range(processes)
    ]
    return [json.loads(process.communicate()[0]) for process in running]


def _wrong(lake: Lake, rows: float) -> float:
    """Count the acknowledged rows that are missing, and the keys that are there twice."""
    keys = [lake.frame(CALLS).select(ledger.KEY).collect(), lake.frame(TOYS).select("key").collect()]
    twice = sum(frame.height - frame.n_unique() for frame in keys)
    return max(rows - sum(frame.height for frame in keys), 0) + twice


def write(lake: Lake, writer: int, seconds: float, end: float) -> None:
    """Write until the time is over, and print what was acknowledged."""
    done = {"rows": 0, "commits": 0, "refused": 0, "slowest": 0.0}
    time.sleep(max(0.0, end - seconds - time.time()))
    first = writer * 10**7
    while time.time() < end:
        names = range(first, first := first + ROWS)
        replies, toys = [call(name) for name in names], pl.DataFrame([toy(str(name)) for name in names])
        steps: tuple[Callable[[], object], ...] = (
            lambda rows=replies: ledger.append(lake, rows),  # type: ignore[misc]
            lambda rows=toys: land(lake, TOYS, rows),  # type: ignore[misc]
        )
        for step in steps:
            started = time.time()
            try:
                step()
            except LakeError:
                done["refused"] += 1
                continue
            done["rows"] += ROWS
            done["commits"] += 1
            done["slowest"] = max(done["slowest"], time.time() - started)
    print(json.dumps(done))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        write(Lake(sys.argv[1], json.loads(sys.argv[2])), int(sys.argv[3]), float(sys.argv[4]), float(sys.argv[5]))
    else:
        main()
