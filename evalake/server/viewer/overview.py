"""What is known beyond one run: metric values over time, explained differences, the history of gates, and checks."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import polars as pl
from fastapi import Query
from pydantic import BaseModel, Field

from evalake.contracts.audit import outcome_of
from evalake.contracts.contract import Contract
from evalake.contracts.engines.sql import describe
from evalake.contracts.tables import CONTRACT_CHECKS, GATE_DECISIONS, METRIC_SNAPSHOTS, RUNS, SNAPSHOTS
from evalake.core.errors import EvalakeError
from evalake.core.hashing import plain
from evalake.decisions.explain import explain
from evalake.decisions.sides import find_sides
from evalake.decisions.trend import WATCHED, step, trend
from evalake.sdk import Suite
from evalake.server.scoring.views import Micros, micros
from evalake.server.viewer.access import LakeHere, Name
from evalake.server.viewer.comparison import Sides, as_answers
from evalake.server.viewer.run import MetricView
from evalake.server.viewer.run_list import datasets_of
from evalake.storage.lake import Lake
from evalake.suites.registry import all_contracts, usable_suites
from evalake.tasks.runtime.runs import tagged, with_labels

MOST_POINTS = 5000
MOST_STEPS = 20  # pairs of snapshots that are compared for one figure
MOST_ROWS = 200  # of a part
MOST_DECISIONS = 5_000
SHOWN = ("part", "side", "a", "b", "judge", "dataset", "sample_id", "sample_hash", "replicate")

Named = Annotated[str, Query(max_length=200)]
SliceName = Annotated[str, Query(alias="slice", max_length=200)]

_OF_SNAPSHOT = ("snapshot_id", "run_id", "created_at", "definition_hash", "scorer_version")
_OF_RUN = ("run_id", "origin", "started_at", "ended_at", "dataset_versions", "parameters")


class SuiteView(BaseModel):
    """A suite, with the names of its metrics and slices."""

    name: str
    title: str
    headline: list[str]
    metrics: list[str]
    slices: list[str]


class Point(MetricView):
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
    tier: int | None
    se: float | None


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
    suites = sorted(usable_suites(lake), key=lambda each: each.name)
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
    lake: LakeHere, suite: Named, metric: Named, slice_: SliceName = "all", model: Name = None, tag: Name = None
) -> list[StepView]:
    """Compute how a metric moved between comparable snapshots, with paired intervals: its newest steps."""
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


class WantedExplanation(Sides):
    """Which difference is split, and in which metric; without one, in the ranking one."""

    metric: Annotated[str, Field(max_length=200)] | None = None


ExplanationQuery = Annotated[WantedExplanation, Query()]


class ExplanationView(BaseModel):
    """The parts as `evalake explain` has them, which sum up to the difference, and the first rows of each."""

    parts: list[dict[str, Any]]
    rows: dict[str, list[dict[str, Any]]]
    runs: dict[str, str]  # of sides a and b
    most_rows: int


class GateHistory(BaseModel):
    """What one rule decided of one model, by judge: each decision, oldest first."""

    suite: str
    rule: str
    model: str
    judge: str | None
    decisions: list[dict[str, Any]]


def explanation(lake: LakeHere, wanted: ExplanationQuery) -> ExplanationView:
    """Split a difference. Raises as `comparison` does."""
    with as_answers():
        found = explain(lake, wanted.a, wanted.b, run_id=wanted.run, tag=wanted.tag, metric=wanted.metric)
        sides = find_sides(lake, (wanted.a, wanted.b), wanted.run, wanted.tag)
    rows = found.rows.select(name for name in SHOWN if name in found.rows.columns)
    parts = {str(part): of.head(MOST_ROWS) for (part,), of in rows.group_by("part", maintain_order=True)}
    return ExplanationView(
        parts=plain(found.parts.to_dicts()),
        rows={part: plain(of.to_dicts()) for part, of in parts.items()},
        runs={name: side.run["run_id"] for name, side in zip("ab", sides, strict=True)},
        most_rows=MOST_ROWS,
    )


def gate_history(lake: LakeHere, suite: Name = None) -> list[GateHistory]:
    """List the rules that were held, the one decided last first; of the newest MOST_DECISIONS decisions."""
    rows = lake.frame(GATE_DECISIONS)
    rows = rows if suite is None else rows.filter(pl.col("suite") == suite)
    newest = rows.sort("decided_at", descending=True).head(MOST_DECISIONS).collect()
    histories = []
    key = ("suite", "rule", "model", "judge")
    for names, own in newest.group_by(key, maintain_order=True):
        decisions = (
            own.reverse().with_columns(decided_at_us=pl.col("decided_at").dt.epoch("us")).drop("decided_at", *key)
        )
        histories.append(GateHistory(**dict(zip(key, names, strict=True)), decisions=plain(decisions.to_dicts())))
    return histories


class EngineResult(BaseModel):
    """What came of a rule in one engine."""

    engine: str
    passed: bool
    outcome: str  # kept, warning or broken
    rows_failed: int
    message: str | None


class RuleCheck(BaseModel):
    """A rule, in words, and what came of it."""

    rule_id: str
    demands: str
    severity: str
    dimension: str
    results: list[EngineResult]


class TableCheck(BaseModel):
    """A table as it was checked last."""

    table: str
    description: str
    version: int
    rows: int
    checked_at_us: Micros
    broken: int  # rules
    warnings: int  # rules that are not kept and refuse nothing
    rules: list[RuleCheck]


def last_checks(lake: LakeHere) -> list[TableCheck]:
    """List each table's rules with their results in its newest checked version; tables that broke one come first."""
    rows = lake.frame(CONTRACT_CHECKS).filter(pl.col("batch_id").is_null(), pl.col("table_version").is_not_null())
    is_newest = pl.col("table_version") == pl.col("table_version").max().over("table_name")
    newest = rows.filter(is_newest).sort("rule_id", "engine").collect()
    tables = [_table(each, newest.filter(table_name=each.table)) for each in all_contracts(lake)]
    return sorted(
        (table for table in tables if table is not None), key=lambda table: (not table.broken, not table.warnings)
    )


_OF_ENGINE = ("engine", "passed", "rows_failed", "message")


def _outcome(row: Mapping[str, Any]) -> str:
    return outcome_of(row["severity"], passed=row["passed"])


def _table(contract: Contract, rows: pl.DataFrame) -> TableCheck | None:
    if rows.is_empty():
        return None
    by_rule = rows.rows_by_key("rule_id", named=True, include_key=True)
    demands = {each.id: describe(each) for each in contract.all_rules}
    told: dict[str, set[str]] = {"kept": set(), "warning": set(), "broken": set()}
    for row in rows.iter_rows(named=True):
        told[_outcome(row)].add(row["rule_id"])
    places = {rule_id: number for number, rule_id in enumerate(demands)}
    return TableCheck(
        table=contract.table,
        description=contract.description,
        version=rows["table_version"][0],
        rows=max(rows["rows_checked"].to_list()),
        checked_at_us=micros(max(rows["checked_at"].to_list())) or 0,
        broken=len(told["broken"]),
        warnings=len(told["warning"]),
        rules=[
            RuleCheck(
                rule_id=rule_id,
                demands=demands.get(rule_id, rule_id),
                severity=results[0]["severity"],
                dimension=results[0]["dimension"],
                results=[
                    EngineResult(outcome=_outcome(row), **{name: row[name] for name in _OF_ENGINE}) for row in results
                ],
            )
            for rule_id, results in sorted(by_rule.items(), key=lambda each: places.get(each[0], len(places)))
        ],
    )
