"""Runs and metric values of every suite, as the dashboard draws them."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
from pydantic import BaseModel

from contracts.tables import METRIC_SNAPSHOTS, RUNS, SNAPSHOTS
from service.scoring.views import Micros, micros
from storage.lake import Lake
from suites.registry import suite as find_suite
from suites.registry import suite_names
from tasks.runtime.runs import tagged, with_labels, with_lost

MOST_POINTS = 5000


class RunView(BaseModel):
    """A run."""

    run_id: str
    suite: str
    origin: str
    state: str
    models: list[str]
    judges: list[str]
    samples: int
    items: int
    calls_made: int
    calls_from_ledger: int
    calls_failed: int
    rows_landed: int
    rows_quarantined: int
    cost_usd: float | None
    snapshot_id: str | None
    flow_run_id: str | None
    message: str | None
    tags: list[str]
    note: str | None
    started_at_us: Micros
    ended_at_us: Micros | None


class RunPage(BaseModel):
    """Some of the runs, newest first; and the tags of all runs, by which they can be chosen."""

    runs: list[RunView]
    tags: list[str]
    page: int
    page_size: int
    total: int
    pages: int


class SuiteView(BaseModel):
    """A suite, with the names of its metrics and slices."""

    name: str
    title: str
    headline: list[str]
    metrics: list[str]
    slices: list[str]


class Point(BaseModel):
    """One value of one metric in one snapshot.

    `datasets` names those of its run, and how many samples it took of each, as the view `metric_history` does; None
    where the run is not in the table.
    """

    snapshot_id: str
    run_id: str
    datasets: str | None
    suite: str
    created_at_us: Micros
    model: str
    judge: str | None
    slice: str
    slice_value: str
    metric: str
    tier: int | None
    value: float | None
    n: int
    se: float | None
    ci_low: float | None
    ci_high: float | None
    reliable: bool


class Metrics(BaseModel):
    """Values of all snapshots, oldest first."""

    suites: list[SuiteView]
    points: list[Point]


def run_page(lake: Lake, suite: str | None, page: int, page_size: int, tag: str | None = None) -> RunPage:
    """One page of the runs: of all, or of those of a suite, or with a tag."""
    rows = with_labels(with_lost(lake.frame(RUNS)))
    tags = rows.select(pl.col("tags").explode().drop_nulls().unique().sort()).collect().to_series().to_list()
    if suite is not None:
        rows = rows.filter(pl.col("suite") == suite)
    runs = tagged(rows, tag).sort("started_at", "run_id", descending=True).collect()
    here = runs.slice((page - 1) * page_size, page_size).iter_rows(named=True)
    return RunPage(
        runs=[run_view(row) for row in here],
        tags=tags,
        page=page,
        page_size=page_size,
        total=runs.height,
        pages=-(-runs.height // page_size),
    )


def metric_history(
    lake: Lake, suite: str | None, metrics: Sequence[str], slice_: str, run_id: str | None, tag: str | None = None
) -> Metrics:
    """The values of some metrics (without any, of each suite's headline) in all snapshots, or of runs with a tag."""
    snapshots = lake.frame(SNAPSHOTS).select("snapshot_id", "run_id", "created_at")
    values = lake.frame(METRIC_SNAPSHOTS)
    known = values.select("suite", "metric", "slice").unique().collect()
    wanted = list(metrics) or [name for each in suite_names() for name in find_suite(each).headline]
    values = values.filter(pl.col("metric").is_in(wanted) & (pl.col("slice") == slice_))
    if suite is not None:
        values = values.filter(pl.col("suite") == suite)
    if run_id is not None:
        snapshots = snapshots.filter(pl.col("run_id") == run_id)
    runs = tagged(with_labels(lake.frame(RUNS)), tag).select("run_id", "dataset_versions", "parameters")
    snapshots = snapshots.join(runs, on="run_id", how="left" if tag is None else "inner")
    points = values.join(snapshots, on="snapshot_id").sort("created_at", "row_key").tail(MOST_POINTS).collect()
    return Metrics(
        suites=[_suite(name, known.filter(suite=name)) for name in suite_names()],
        points=[_point(row) for row in points.iter_rows(named=True)],
    )


def run_view(row: Mapping[str, Any]) -> RunView:
    """A row of RUNS as the API gives it."""
    given = json.loads(row["parameters"])
    labels = {"tags": given.get("tags") or [], "note": given.get("note")}
    return RunView(
        **{**row, **labels}, started_at_us=micros(row["started_at"]) or 0, ended_at_us=micros(row["ended_at"])
    )


def _suite(name: str, known: pl.DataFrame) -> SuiteView:
    suite = find_suite(name)
    return SuiteView(
        name=name,
        title=suite.title,
        headline=list(suite.headline),
        metrics=sorted(set(known["metric"])),
        slices=sorted(set(known["slice"])),
    )


def _point(row: dict[str, Any]) -> Point:
    finite = {name: _finite(row[name]) for name in ("value", "se", "ci_low", "ci_high")}
    datasets = None if row["dataset_versions"] is None else _datasets(row["dataset_versions"], row["parameters"])
    return Point(**{**row, **finite}, datasets=datasets, created_at_us=micros(row["created_at"]) or 0)


def _datasets(versions: str, parameters: str) -> str:
    return "+".join(sorted(json.loads(versions))) + _taken(json.loads(parameters))


def _taken(parameters: Mapping[str, Any]) -> str:
    """Which samples of its datasets a run took, as `metric_history` says it; nothing where it took all."""
    limit, first = parameters.get("limit"), parameters.get("first")
    if limit is not None and parameters.get("draw") is not None:
        return f" ({limit} drawn)"
    if (number := limit if first is None else first) is not None:
        return f" (first {number})"
    return " (chosen)" if parameters.get("samples") or parameters.get("only_failed") else ""


def _finite(value: float | None) -> float | None:
    """The value, or None where JSON has no word for it."""
    return value if value is not None and value - value == 0 else None
