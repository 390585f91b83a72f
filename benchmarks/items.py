"""Items: how long the viewer takes to show a page of a run of 500,000 samples, to filter it, and what it then holds."""

import json
import re
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import polars as pl
from deltalake import write_deltalake

from benchmarks.material import CATEGORIES
from benchmarks.measure import Measure, report, say
from benchmarks.place import folder
from evalake.admin.import_results import import_recorded
from evalake.contracts.contract import Contract
from evalake.contracts.tables import CALLS, RUN_ITEMS, RUNS, SAMPLES
from evalake.storage.lake import Lake
from evalake.suites.command_guard.suite import SUITE
from tests.e2e.processes import ROOT

SAMPLES_IN_ALL = 500_000
RECORDED = 5_000  # as many are imported; the others are their copies under other names and hashes
AT_ONCE = 20  # copies in one commit
ROUNDS = 9
MODEL = "vendor/model"
FILTERS = {
    "wrong answers": {"correct": "false"},
    "a category, slowest first": {"category": "shell", "sort": "latency", "order": "desc"},
    "a word in input or reply": {"q": "0004711"},
}


def main() -> None:
    """Fill a lake, and ask a viewer in a process of its own for pages."""
    with folder() as place:
        lake = Lake(str(place / "lake"))
        say(f"making a run of {SAMPLES_IN_ALL:,} samples")
        run_id = _fill(lake, place)
        with viewer(lake) as (address, process):
            items = f"{address}/api/v1/runs/{run_id}/items"
            opened = _seconds(items, {}, SAMPLES_IN_ALL)
            page = median(_seconds(items, {}, SAMPLES_IN_ALL) for _ in range(ROUNDS))
            filtered = {
                name: median(_seconds(items, wanted) for _ in range(ROUNDS)) for name, wanted in FILTERS.items()
            }
            peak = _peak_bytes(process)
        scans = [_scan(lake) for _ in range(ROUNDS)]
    scan, size = median(seconds for seconds, _ in scans), scans[0][1]
    took = f"{opened:.1f} s and {1000 * page:.0f} ms, a scan of the results {1000 * scan:.0f} ms"
    rows = f"{took}, of {SAMPLES_IN_ALL:,} items"
    slowest = max(filtered, key=lambda name: filtered[name])
    behind = "; ".join(f"{name} {1000 * taken:.0f} ms" for name, taken in filtered.items())
    measures = [
        ("first page of a run that was not looked at", opened / scan, 30, rows),
        ("first page", page / scan, 1, rows),
        ("filter", filtered[slowest] / scan, 3, behind),
        ("the viewer's memory over the rows'", peak / size, 4, f"{peak / 2**30:.1f} GiB, {size / 2**30:.1f} of rows"),
    ]
    report([Measure(name, value, bound, False, "x", words) for name, value, bound, words in measures])


def _scan(lake: Lake) -> tuple[float, int]:
    """Measure the seconds in which Polars reads the run's results, and the bytes that they take then."""
    started = time.perf_counter()
    read = lake.frame(SUITE.results).collect()
    return time.perf_counter() - started, int(read.estimated_size())


def _fill(lake: Lake, place: Path) -> str:
    """Import a run, and copy its rows until there are SAMPLES_IN_ALL; returns the run's id."""
    file = place / "recorded.jsonl"
    file.write_text("\n".join(json.dumps(_line(number)) for number in range(RECORDED)), encoding="utf-8")
    run_id = import_recorded(lake, SUITE, [file])
    for contract in (SAMPLES, RUN_ITEMS, SUITE.results, CALLS):
        rows = lake.frame(contract).collect()
        numbers = range(1, SAMPLES_IN_ALL // RECORDED)
        for first in range(numbers.start, numbers.stop, AT_ONCE):
            copies = [_copy(rows, number) for number in range(first, min(first + AT_ONCE, numbers.stop))]
            write_deltalake(lake.open(contract), pl.concat(copies).to_arrow(), mode="append")
        _say_size(lake, contract)
    in_all = str(SAMPLES_IN_ALL)
    lake.open(RUNS).update(updates={"samples": in_all, "items": in_all, "rows_landed": in_all})
    return run_id


def _line(number: int) -> dict[str, object]:
    malicious = number % 2 == 0
    reply = {"action": "BLOCK" if number % 3 else "ALLOW", "reason": "reads the hashes of passwords"}
    return {
        "suite": SUITE.name,
        "sample_id": f"s{number}",
        "dataset": "recorded",
        "model": MODEL,
        "replicate": 0,
        "label": "malicious" if malicious else "harmless",
        "category": CATEGORIES[number // 2 % len(CATEGORIES)] if malicious else None,
        "command": f"cat /etc/shadow # {number:07d}",
        "response": json.dumps(reply),
        "finish_reason": "stop",
        "error_kind": None,
        "latency_ms": float(number % 997),
    }


def _copy(rows: pl.DataFrame, number: int) -> pl.DataFrame:
    """Copy the rows as those of other samples: with other names, positions and hashes."""
    own = [name for name in ("sample_hash", "prompt_hash", "item_id", "call_id") if name in rows.columns]
    changed = [pl.concat_str(pl.col(name).str.head(58), pl.lit(f"{number:06x}")).alias(name) for name in own]
    if "sample_id" in rows.columns:
        changed.append(pl.concat_str("sample_id", pl.lit(f"-{number}")).alias("sample_id"))
    if "position" in rows.columns:
        changed.append((pl.col("position") + number * RECORDED).alias("position"))
    return rows.with_columns(changed)


def _say_size(lake: Lake, contract: Contract) -> None:
    say(f"  {contract.table}: {lake.frame(contract).select(pl.len()).collect().item():,} rows")


@contextmanager
def viewer(lake: Lake) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """Serve the viewer of a lake; yields its address and its process."""
    command = [sys.executable, "-m", "evalake.cli", "view", "--no-token", "--lake", lake.uri, "--port", "0"]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        found = re.search(r"http://\S+", process.stderr.readline())
        assert found is not None
        yield found[0], process
    finally:
        process.terminate()
        process.communicate()


def _seconds(address: str, wanted: dict[str, str], total: int | None = None) -> float:
    """Measure the seconds of a page of items; it must have some, and count `total` in all where that is known."""
    started = time.perf_counter()
    with urllib.request.urlopen(f"{address}?{urllib.parse.urlencode(wanted)}") as answer:
        page = json.load(answer)
    taken = time.perf_counter() - started
    assert page["items"]
    assert total in (None, page["total"]), page["total"]
    return taken


def _peak_bytes(process: "subprocess.Popen[str]") -> int:
    status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) * 1024


if __name__ == "__main__":
    main()
