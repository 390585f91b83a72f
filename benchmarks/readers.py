"""Readers: what 200 people wait for the list of 50,000 runs and for its metrics, while a run goes on and at rest."""

import asyncio
import json
import random
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from statistics import median, quantiles

import aiohttp
import polars as pl

from benchmarks.items import viewer
from benchmarks.measure import Measure, report, say
from benchmarks.place import folder
from evalake.contracts.engines.arrow import conform, polars_schema
from evalake.contracts.tables import METRIC_SNAPSHOTS, RUN_COVERAGE, RUNS, SNAPSHOTS
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.storage.snapshots import BOUNDS, Snapshot, metric_rows
from evalake.suites.command_guard.suite import SUITE
from tests.integration.storage.rows import run

LISTED = 50_000
AT_ONCE = 10_000
ORDERS = 50  # each has been given a thousand times
CLIENTS = 200
SECONDS = 30
PAUSE = 4.0  # seconds of a reader between two pages, at most
BEAT = 5.0  # seconds between heartbeats of the run that goes on
KNOWN = {"slice": "all", "slice_value": "", "n": 1, "units": 1, "n_eff": 1.0, "reliable": False}
VALUE = dict.fromkeys(METRIC_SNAPSHOTS.column) | KNOWN
WORDS = dict.fromkeys(("without_verdict_kinds", "missing_kinds", "left_out", "refused"), "{}")
COUNTS = {"source_rows": 10, "asked": 10, "answered": 10, "without_verdict": 0, "missing": 0}
READS = {
    "runs": [
        "",
        *(f"?page={number}" for number in range(2, 6)),
        "?reruns=false",
        "?sort=value",
        "?suite=command_guard&q=t7",
    ],
    "metrics": ["", f"?suite={SUITE.name}", f"?suite={SUITE.name}&metric={SUITE.metrics.headline[0]}"],
}


def main() -> None:
    """Fill a lake, and read its pages from 200 clients, first at rest and then beside a run."""
    with folder() as place:
        lake = Lake(str(place / "lake"))
        say(f"making a lake of {LISTED:,} runs")
        for first in range(0, LISTED, AT_ONCE):
            fill(lake, range(first, first + AT_ONCE))
        with viewer(lake) as (address, _):
            started = time.perf_counter()
            asyncio.run(_first(address))
            opened = time.perf_counter() - started
            rest = asyncio.run(_read(address, lambda: None))
            beside = asyncio.run(_read(address, lambda: fill(lake, range(LISTED, LISTED + 1), state="running")))
    measures = [Measure("the first list of 50,000 runs", opened, 2, False, "s", "and every other page once")]
    for when, waits in (("at rest", rest), ("beside a run", beside)):
        for kind, taken in waits.items():
            behind = f"{len(taken):,} answers, median {median(taken):.0f} ms, longest {max(taken):.0f} ms"
            measures.append(Measure(f"{kind} {when}, p99", quantiles(taken, n=100)[98], 300, False, "ms", behind))
    report(measures)


def fill(lake: Lake, numbers: range, state: str = "completed") -> None:
    """Land runs with their coverage, snapshots and headline values."""
    runs, coverage, snapshots, values = [], [], [], []
    chance = random.Random(numbers.start)
    for number in numbers:
        run_id, order = f"run{number:09d}", number % ORDERS
        model, began = f"vendor/m{order % 7}", datetime(2024, 1, 1, tzinfo=UTC) + timedelta(minutes=20 * number)
        snapshot = Snapshot(run_id, SUITE.name, {}, "0" * 64, "1", 1, {}, "1")
        given = {
            "parameters": json.dumps({"limit": order + 1, "tags": [f"t{order}"]}),
            "dataset_versions": '{"s": "1"}',
        }
        asked = 0 if number % 3 else 5
        counts = {"calls_made": asked, "rows_landed": asked, "state": state, "alive_at": datetime.now(UTC)}
        runs.append(
            {**run(run_id, SUITE.name, began), **given, **counts, "snapshot_id": snapshot.id, "models": [model]}
        )
        of_run = {"run_id": run_id, "model": model, "judge": "", "dataset": "s", "lost_labels": []}
        coverage.append(WORDS | COUNTS | of_run)
        told = {"created_at": began, "warnings": [], "pinned_versions": "{}", "options": "{}"}
        snapshots.append({**vars(snapshot), "snapshot_id": snapshot.id, **told})
        measured = [
            {**VALUE, "model": model, "metric": name, "value": chance.random()} for name in SUITE.metrics.headline
        ]
        frame = metric_rows(snapshot.id, SUITE.name, pl.DataFrame(measured, schema=polars_schema(METRIC_SNAPSHOTS)))
        when = pl.lit(run_id).alias("run_id"), pl.lit(began).alias("measured_at")
        values.append(frame.with_columns(*when, *(pl.lit(None, pl.Float64).alias(name) for name in BOUNDS)))
    for contract, rows in ((RUNS, runs), (RUN_COVERAGE, coverage), (SNAPSHOTS, snapshots)):
        land(lake, contract, conform(rows, contract))
    land(lake, METRIC_SNAPSHOTS, conform(pl.concat(values), METRIC_SNAPSHOTS))


async def _first(address: str) -> None:
    async with aiohttp.ClientSession() as session:
        for kind, queries in READS.items():
            for query in queries:
                started = time.perf_counter()
                size = await _answer(session, f"{address}/api/v1/{kind}{query}")
                say(f"  {kind}{query}: {time.perf_counter() - started:.2f} s, {size // 1024} KiB")


async def _answer(session: aiohttp.ClientSession, address: str) -> int:
    async with session.get(address) as answer:
        assert answer.status == 200, (answer.status, address)
        return len(await answer.read())


async def _read(address: str, beat: Callable[[], None]) -> dict[str, list[float]]:
    """Read pages from all clients; returns the milliseconds of each answer. `beat` is called in a thread meanwhile."""
    waits: dict[str, list[float]] = {"runs": [], "metrics": []}
    until = time.monotonic() + SECONDS

    async def reads(session: aiohttp.ClientSession, chance: random.Random) -> None:
        while time.monotonic() < until:
            await asyncio.sleep(chance.uniform(0, PAUSE))
            kind = chance.choice(list(READS))
            started = time.perf_counter()
            await _answer(session, f"{address}/api/v1/{kind}{chance.choice(READS[kind])}")
            waits[kind].append(1000 * (time.perf_counter() - started))

    async def beats() -> None:
        while time.monotonic() < until:
            await asyncio.to_thread(beat)
            await asyncio.sleep(BEAT)

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        await asyncio.gather(beats(), *(reads(session, random.Random(number)) for number in range(CLIENTS)))
    return waits


if __name__ == "__main__":
    main()
