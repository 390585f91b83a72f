"""Metric values of every suite, as the dashboard draws them."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
from pydantic import BaseModel

from evalake.contracts.tables import METRIC_SNAPSHOTS, RUNS, SNAPSHOTS
from evalake.core.errors import EvalakeError
from evalake.decisions.trend import WATCHED, step, trend
from evalake.sdk import Suite
from evalake.server.scoring.views import Micros, micros
from evalake.server.viewer.run_list import datasets_of
from evalake.storage.lake import Lake
from evalake.storage.sql.query import plain
from evalake.suites.registry import suite as find_suite
from evalake.suites.registry import suite_names
from evalake.tasks.runtime.runs import tagged, with_labels

MOST_POINTS = 5000
MOST_STEPS = 20  # pairs of snapshots that are compared for one figure

_OF_SNAPSHOT = ("snapshot_id", "run_id", "created_at", "definition_hash", "scorer_version")
_OF_RUN = ("run_id", "origin", "started_at", "ended_at", "dataset_versions", "parameters")


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
    where the run is not in the table. Values of one `series` mean the same; `previous_id` is the snapshot of the one
    before it.
    """

    snapshot_id: str
    run_id: str
    datasets: str | None
    series: str
    previous_id: str | None
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


class StepView(BaseModel):
    """How a value differs from the one before it in its series: paired, on the samples that both have.

    `message` says why the two could not be compared, where they could not.
    """

    snapshot_id: str
    previous_id: str
    model: str
    judge: str | None
    slice_value: str
    difference: float | None
    ci_low: float | None
    ci_high: float | None
    units: int | None
    message: str | None


class ChangeView(BaseModel):
    """A series that left its beginning, and since when; `message` says it in words."""

    suite: str
    model: str
    judge: str | None
    metric: str
    slice_value: str
    series: str
    run_id: str
    since_run_id: str
    since_us: Micros
    before: float
    now: float
    message: str


class Metrics(BaseModel):
    """Values of all snapshots, oldest first; under what those of each series were measured; which series changed."""

    suites: list[SuiteView]
    points: list[Point]
    series: dict[str, dict[str, str]]
    changes: list[ChangeView]


def metric_history(
    lake: Lake, suite: str | None, metrics: Sequence[str], slice_: str, run_id: str | None, tag: str | None = None
) -> Metrics:
    """Read values of some metrics (without any, of each suite's headline) in snapshots, or in those of runs with a tag.

    Of each definition, the newest `WATCHED` snapshots are read.
    """
    snapshots = lake.frame(SNAPSHOTS).select(*_OF_SNAPSHOT)
    values = lake.frame(METRIC_SNAPSHOTS).drop("run_id", "measured_at")  # older rows have neither; snapshots do
    known = values.select("suite", "metric", "slice").unique().collect()
    suites = [find_suite(name, lake) for name in suite_names(lake)]
    wanted = list(metrics) or [name for each in suites for name in each.metrics.headline]
    values = values.filter(pl.col("metric").is_in(wanted) & (pl.col("slice") == slice_))
    if suite is not None:
        values = values.filter(pl.col("suite") == suite)
    if run_id is not None:
        snapshots = snapshots.filter(pl.col("run_id") == run_id)
    runs = tagged(with_labels(lake.frame(RUNS)), tag).select(*_OF_RUN)
    snapshots = snapshots.join(runs, on="run_id", how="left" if tag is None else "inner")
    age = pl.col("created_at").rank("ordinal", descending=True).over("definition_hash")
    snapshots = snapshots.filter(age <= WATCHED)
    points = values.join(snapshots, on="snapshot_id").sort("created_at", "row_key").collect()
    joined = trend(lake, points)
    return Metrics(
        suites=[_suite(each, known.filter(suite=each.name)) for each in suites],
        points=[_point(row) for row in joined.values.tail(MOST_POINTS).iter_rows(named=True)],
        series={name: dict(conditions) for name, conditions in joined.conditions.items()},
        changes=[
            ChangeView(**{**vars(each), "since_us": micros(each.since) or 0, "message": each.sentence})
            for each in joined.changes
        ],
    )


def metric_steps(
    lake: Lake, suite: str, metric: str, slice_: str, model: str | None, tag: str | None
) -> list[StepView]:
    """Compute the newest steps of a metric between values that are comparable, newest first."""
    points = metric_history(lake, suite, [metric], slice_, None, tag).points
    steps = [each for each in reversed(points) if each.previous_id is not None and model in (None, each.model)]
    pairs = list(dict.fromkeys((each.snapshot_id, each.previous_id, each.model) for each in steps))[:MOST_STEPS]
    compared = {pair: _compared(lake, *pair, metric) for pair in pairs}
    return [
        _step(each, *compared[pair])
        for each in steps
        if (pair := (each.snapshot_id, each.previous_id, each.model)) in compared
    ]


def _compared(
    lake: Lake, snapshot_id: str, previous_id: str | None, model: str, metric: str
) -> tuple[Sequence[Mapping[str, Any]], str | None]:
    """Compute the rows of a step, or say why there are none."""
    try:
        return step(lake, snapshot_id, str(previous_id), model, metric), None
    except EvalakeError as error:
        return (), str(error)


def _step(point: Point, rows: Sequence[Mapping[str, Any]], message: str | None) -> StepView:
    place = (point.judge, point.slice, point.slice_value)
    row = next((each for each in rows if (each["judge"], each["slice"], each["slice_value"]) == place), {})
    fields = {name: row.get(name) for name in ("difference", "ci_low", "ci_high", "units")}
    nothing = "no sample of both is in this slice" if not row and message is None else message
    return StepView(**{**point.model_dump(), **fields, "message": nothing})


def _suite(suite: Suite, known: pl.DataFrame) -> SuiteView:
    return SuiteView(
        name=suite.name,
        title=suite.title,
        headline=list(suite.metrics.headline),
        metrics=sorted(set(known["metric"])),
        slices=sorted(set(known["slice"])),
    )


def _point(row: dict[str, Any]) -> Point:
    finite = {name: plain(row[name]) for name in ("value", "se", "ci_low", "ci_high")}
    datasets = None if row["dataset_versions"] is None else datasets_of(row["dataset_versions"], row["parameters"])
    return Point(**{**row, **finite}, datasets=datasets, created_at_us=micros(row["created_at"]) or 0)
