"""Queries: SQL of one model's rate by category over millions of results, over a Polars scan of the same columns.

And `select * from replies limit 5` over `select 1`, in a lake whose ledger has as many rows. Each query is a process;
queries and scans take turns. `python -m benchmarks.queries 10000000` has another size, and a table of engines, too.
"""

import json
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import duckdb
import polars as pl
from deltalake import write_deltalake

from benchmarks.material import CATEGORIES, fill
from benchmarks.measure import Measure, report, say
from benchmarks.place import child, folder
from evalake.contracts.engines.arrow import conform, polars_schema
from evalake.contracts.tables import CALLS
from evalake.metrics.compute import measure
from evalake.storage.lake import Lake
from evalake.storage.maintenance import maintain
from evalake.storage.sql.query import query
from evalake.suites.command_guard.contract import RESULTS
from evalake.suites.command_guard.suite import SUITE
from evalake.suites.registry import all_contracts

ROWS = 3_000_000
AT_ONCE = 100_000
MODELS = ("one", "two", "three", "four", "five")
ROUNDS = 3
RATE = "select category, avg(correct::int), count(*) from command_guard_results where model = 'one' group by category"


def main(rows: int = ROWS, *, engines: bool = False) -> None:
    """Fill a lake, maintain it, and report the medians of the ratios."""
    with folder() as place:
        lake = Lake(str(place / "lake"))
        fill(lake, rows)
        fill_results(lake, rows)
        started = time.perf_counter()
        maintain(lake, [CALLS, RESULTS])
        say(f"{rows:,} results and replies; maintenance took {time.perf_counter() - started:.0f} s")
        steps: dict[str, Callable[[], object]] = {
            "scan": lambda: _scan(lake),
            "rate": lambda: query(lake, all_contracts(), RATE),
            "select 1": lambda: query(lake, all_contracts(), "select 1"),
            "limit 5": lambda: query(lake, all_contracts(), "select * from replies limit 5"),
        }
        seconds: dict[str, list[float]] = {name: [] for name in steps}
        for _ in range(ROUNDS + 1):
            for name, step in steps.items():
                started = time.perf_counter()
                step()
                seconds[name].append(time.perf_counter() - started)
        took = {name: median(each[1:]) for name, each in seconds.items()}
        behind = ", ".join(f"{name} {each:.2f} s" for name, each in took.items()) + f"; medians of {ROUNDS}"
        if engines:
            for engine in ENGINES:
                say(f"{engine}: {child('queries', [lake.uri, engine])}")
    of, rate = f"of {rows:,}", max(0.0, took["rate"] - took["select 1"]) / took["scan"]
    report(
        [
            Measure(f"SQL of a rate by category {of}, beyond `select 1`", rate, 3, False, "x", behind),
            Measure(f"replies limit 5 {of}", took["limit 5"] / took["select 1"], 1.5, False, "x", behind),
        ]
    )


def fill_results(lake: Lake, rows: int) -> None:
    """Put made-up results of five models into a new table, run after run."""
    table, schema = lake.ensure(RESULTS), polars_schema(RESULTS)
    for first in range(0, rows, AT_ONCE):
        number = pl.int_range(first, min(first + AT_ONCE, rows), eager=True)
        digest = pl.Series([f"{each:064x}" for each in number])
        given: dict[str, pl.Expr | pl.Series] = {
            "landed_by_run": pl.lit(f"run {first}"),
            "model": pl.lit(MODELS[first // AT_ONCE % len(MODELS)]),
            **dict.fromkeys(("sample_hash", "prompt_hash", "reply_hash"), digest),
            "sample_id": number.cast(pl.String),
            "category": pl.Series([CATEGORIES[each % len(CATEGORIES)] for each in number]),
            "correct": number % 3 == 0,
            "verdict": pl.lit("ALLOW"),
            "label": pl.lit("harmless"),
            "origin": pl.lit("call"),
        }
        columns: dict[str, pl.Expr | pl.Series] = {name: pl.lit(None, kind) for name, kind in schema.items()}
        plain = {
            each.name: pl.lit("x" if schema[each.name] == pl.String else 0).cast(schema[each.name])
            for each in RESULTS.columns
            if not each.nullable
        }
        frame = pl.DataFrame({"number": number}).select(**{**columns, **plain, **given})
        write_deltalake(table, conform(frame, RESULTS).to_arrow(), mode="append")


def _reads(lake: Lake) -> pl.LazyFrame:
    return pl.scan_delta(lake.location(RESULTS)).filter(pl.col("model") == "one").select("category", "correct")


def _scan(lake: Lake) -> pl.DataFrame:
    return _reads(lake).collect()


# The reduction that a metric needs of each engine: the sums of a rate by cluster (here the sample), for each model.


def _polars(lake: Lake, engine: str) -> int:
    rows = pl.scan_delta(lake.location(RESULTS)).group_by("model", "sample_hash")
    sums = rows.agg(pl.col("correct").cast(pl.Float64).sum(), pl.len())
    return sums.collect(engine=engine).height  # type: ignore[call-overload, no-any-return]


def _duckdb(lake: Lake) -> int:
    files = lake.open(RESULTS).file_uris()
    connection = duckdb.connect(config={"memory_limit": "1GB", "threads": 2})
    source = f"read_parquet({files}, hive_partitioning = true)"
    sums = f"select model, sample_hash, sum(correct::double), count(*) from {source}"
    return int(connection.sql(f"select count(*) from ({sums} group by all)").fetchall()[0][0])


def _declared(lake: Lake, rows: Callable[[pl.LazyFrame], pl.LazyFrame | pl.DataFrame]) -> int:
    """Measure every metric that the suite declares, as snapshots do."""
    results = pl.scan_delta(lake.location(RESULTS)).with_columns(judge=pl.lit(None, pl.String))
    return measure(rows(results), SUITE.all_metrics(SUITE.options), cluster="sample_hash").height


ENGINES: dict[str, Callable[[Lake], int]] = {
    "every declared metric, in memory": lambda lake: _declared(lake, lambda rows: rows.collect()),
    "every declared metric, from a scan": lambda lake: _declared(lake, lambda rows: rows),
    "Polars in memory": lambda lake: _polars(lake, "in-memory"),
    "Polars streaming": lambda lake: _polars(lake, "streaming"),
    "DuckDB, 1 GB": _duckdb,
}


def engine(lake: Lake, name: str) -> None:
    """Reduce the results to sums by cluster with one engine, and print what it took."""
    Path("/proc/self/clear_refs").write_text("5")  # begins the peak anew
    before, started = _kilobytes("VmRSS"), time.perf_counter()
    clusters = ENGINES[name](lake)
    seconds, most = time.perf_counter() - started, _kilobytes("VmHWM")
    print(json.dumps({"rows": clusters, "seconds": round(seconds, 2), "MiB": (most - before) // 1024}))


def _kilobytes(name: str) -> int:
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1])


if __name__ == "__main__":
    if len(sys.argv) > 2:
        engine(Lake(str(Path(sys.argv[1]))), sys.argv[2])
    elif len(sys.argv) > 1:
        main(int(sys.argv[1]), engines=True)
    else:
        main()
