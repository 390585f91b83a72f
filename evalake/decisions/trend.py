"""Trends: which values of a metric mean the same from run to run, how two differ, and which series changed."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import Any

import numpy as np
import polars as pl

from evalake.contracts.tables import METRIC_SNAPSHOTS, RUNS, SNAPSHOTS
from evalake.contracts.tables.metrics import JUDGE_VERSIONS
from evalake.core.hashing import content_hash
from evalake.decisions.compare import compare_found
from evalake.decisions.sides import find_side
from evalake.metrics.agreement import BY_DAWID_SKENE, PANEL
from evalake.metrics.drift import BEGINNING, FALSE_ALARMS_A_YEAR, moved
from evalake.metrics.limits import left_open
from evalake.storage.lake import Lake
from evalake.suites.registry import suite as find_suite
from evalake.suites.registry import usable_suites
from evalake.tasks.coverage import missing_shares

_NAMES = ("suite", "model", "judge", "metric", "slice", "slice_value")
_TELLING = (*_NAMES, "definition_hash", "scorer_version", "origin", "parameters")
_HASH = re.compile(r"\b([0-9a-f]{8})[0-9a-f]{56}\b")
_KEPT_STEPS = 2000

WATCHED = 730
"""Snapshots of one definition that are watched at most: two years of nights; an older beginning gives way."""

Values = Mapping[str, Any]
Shares = Mapping[tuple[str, str, str | None], float]
Moves = Mapping[tuple[str, str], Sequence[datetime]]


@dataclass(frozen=True)
class Trend:
    """Values of metrics, and what those of one series have in common.

    `values` has `series`, equal for values that mean the same, and `previous_id`, the snapshot of the known value
    before it in its series, null where there is none. `conditions` tells of each series under what its values were
    measured, as text by name; hashes are cut to eight digits. `changes` lists the series that left their beginning.
    """

    values: pl.DataFrame
    conditions: Mapping[str, Mapping[str, str]]
    changes: "Sequence[Change]"


@dataclass(frozen=True)
class Change:
    """A series that left its beginning: the run that showed it, and the first one that lies apart.

    `before` is the mean of the first ten values, `now` that of the values since.
    """

    suite: str
    model: str
    judge: str | None
    metric: str
    slice: str
    slice_value: str
    series: str
    run_id: str
    since_run_id: str
    since: datetime
    before: float
    now: float

    @property
    def sentence(self) -> str:
        """What changed, since when, and how often an unchanged series says so."""
        of = f"{self.metric} of {self.model}" + (f" by {self.judge}" if self.judge else "")
        part = f", {self.slice} {self.slice_value}" if self.slice != "all" else ""
        way = "higher" if self.now > self.before else "lower"
        return (
            f"{of}{part} is {way} since {self.since:%Y-%m-%d} (run {self.since_run_id}): {self.now:.4g} against "
            f"{self.before:.4g} in its first {BEGINNING} runs; of unchanged series {100 * FALSE_ALARMS_A_YEAR:g} % say "
            "so in a year of nightly runs"
        )


def trend(lake: Lake, values: pl.DataFrame) -> Trend:
    """Tell which values mean the same, as the view `metric_history` does.

    Args:
        lake: The lake that the values are of.
        values: Rows of `metric_snapshots` with what `snapshots` and `runs` say of them: `run_id`, `created_at`,
            `definition_hash` and `scorer_version`; `origin`, `started_at`, `ended_at`, `dataset_versions` and
            `parameters`, null where the run is not in the table.
    """
    criteria, moves = _criteria(lake), _moves(lake)
    series, texts = [], {}
    series_of: dict[tuple[Any, ...], str] = {}  # most values of a series differ in nothing of this
    for row in values.iter_rows(named=True):
        of_judge = criteria.get((row["snapshot_id"], row["judge"])), _judge_version(row, moves)
        told = (*(row[name] for name in _TELLING), row["dataset_versions"] or row["run_id"], str(of_judge))
        if told not in series_of:
            conditions = _conditions(row, *of_judge)
            series_of[told] = content_hash([[row[name] for name in _NAMES], conditions])[:16]
            texts[series_of[told]] = {name: _text(value) for name, value in conditions.items()}
        series.append(series_of[told])
    placed = values.with_columns(series=pl.Series(series, dtype=pl.String), place=pl.int_range(pl.len()))
    known = placed.filter(pl.col("value").is_not_null())
    before = known.sort(pl.coalesce("started_at", "created_at"), "created_at", "snapshot_id").select(
        "place", previous_id=pl.col("snapshot_id").shift().over("series")
    )
    joined = placed.join(before, on="place", how="left").sort("place").drop("place")
    return Trend(joined, texts, tuple(_changes(joined, _missing_shares(lake, joined))))


def headline_changes(lake: Lake, suites: Sequence[str] | None = None, run_id: str | None = None) -> Sequence[Change]:
    """List the series of headline metrics over all samples that left their beginning, of suites or of all.

    With a run, only snapshots of its own definitions are read. Of each definition, the newest `WATCHED` are.
    """
    watched = (find_suite(name, lake) for name in suites) if suites else usable_suites(lake)
    headline = {each.name: each.metrics.headline for each in watched}
    columns = "snapshot_id", "run_id", "created_at", "definition_hash", "scorer_version"
    snapshots = lake.frame(SNAPSHOTS).filter(pl.col("suite").is_in(list(headline))).select(columns).collect()
    if run_id is not None:
        own = snapshots.filter(pl.col("run_id") == run_id)["definition_hash"]
        snapshots = snapshots.filter(pl.col("definition_hash").is_in(own.implode()))
    snapshots = snapshots.sort("created_at").group_by("definition_hash", maintain_order=True).tail(WATCHED)
    is_headline = pl.any_horizontal(
        (pl.col("suite") == name) & pl.col("metric").is_in(list(metrics)) for name, metrics in headline.items()
    )
    ours = pl.col("snapshot_id").is_in(snapshots["snapshot_id"].implode())
    values = lake.frame(METRIC_SNAPSHOTS).filter(ours, pl.col("slice") == "all", is_headline)
    runs = lake.frame(RUNS).select("run_id", "origin", "started_at", "ended_at", "dataset_versions", "parameters")
    of_snapshot = values.drop("run_id", "measured_at").join(snapshots.lazy(), on="snapshot_id")
    return trend(lake, of_snapshot.join(runs, on="run_id").collect()).changes


def _missing_shares(lake: Lake, values: pl.DataFrame) -> Shares:
    """Read the share of items that each model and judge, or panel, lacks, by run."""
    ours = pl.col("run_id").is_in(values["run_id"].unique().implode())
    rows = missing_shares(lake).filter(ours, pl.col("missing") > 0).collect()
    return {(run, model, judge): share for run, model, judge, share in rows.iter_rows()}


def _unknown(rows: pl.DataFrame, shares: Shares) -> list[float]:
    """Say how far missing items can move each value of a series: a share by 1 an item, points by 100."""
    largest = max(abs(value) for value in rows["value"])
    span = next((float(each) for each in (1, 100) if largest <= each), np.inf)
    whose = rows.select("run_id", "model", "judge").iter_rows()
    lacks = [
        max(shares.get((run, model, each), 0.0) for each in (judge, *_members(judge or "")))
        for run, model, judge in whose
    ]
    return [span * lack if lack else 0.0 for lack in lacks]


def _changes(values: pl.DataFrame, missing: Shares) -> Iterator[Change]:
    """Watch every series, one value a run: the last that was measured of it. What is missing may explain a change."""
    known = values.filter(pl.col("value").is_not_null(), pl.col("value").is_finite())
    known = known.with_columns(at=pl.coalesce("started_at", "created_at")).sort("at", "created_at", "snapshot_id")
    known = known.unique(["series", "run_id"], keep="last", maintain_order=True)
    for _, rows in known.group_by("series", maintain_order=True):
        found = moved(rows["value"].to_list(), _unknown(rows, missing))
        if found is not None:
            first = rows.row(found.since, named=True)
            yield Change(
                **{name: first[name] for name in (*_NAMES, "series")},
                run_id=rows["run_id"][found.found],
                since_run_id=first["run_id"],
                since=first["at"],
                before=float(rows["value"].to_numpy()[:BEGINNING].mean()),
                now=float(rows["value"].to_numpy()[found.since :].mean()),
            )


@lru_cache(maxsize=_KEPT_STEPS)
def step(lake: Lake, snapshot_id: str, previous_id: str, model: str, metric: str) -> tuple[Values, ...]:
    """Compare a snapshot's values of a metric with those of the one before it, on the samples that both have.

    Returns:
        A row (as of `compare`, p unadjusted) for each judge and slice; its interval holds for any missing values.
        Snapshots do not change, so what was computed once is kept.

    Raises:
        EvalakeError: The two do not compare, or the rows of one are no longer there.
    """
    new, old = (replace(find_side(lake, name, None), model=model) for name in (snapshot_id, previous_id))
    return tuple(map(left_open, compare_found(lake, new, old, (metric,)).rows.iter_rows(named=True)))


def _conditions(row: Values, criteria: Sequence[str] | None, judge_version: int | None) -> dict[str, Any]:
    given = json.loads(row["parameters"] or "{}")
    asked = given.get("request_parameters") or {}
    return {
        "definitions": row["definition_hash"],
        "scorer": row["scorer_version"],
        "origin": row["origin"],
        # A run that is not in the table compares with no other.
        "datasets": json.loads(row["dataset_versions"]) if row["dataset_versions"] else row["run_id"],
        "samples": _taken(given),
        "prompt types": sorted(given.get("prompts") or given.get("prompt_types") or ()),
        "replicates": given.get("replicates"),
        "request parameters": [asked[name] for name in (row["model"], row["judge"]) if name in asked],
        "criteria": criteria,
        "judge version": judge_version,
    }


def _taken(given: Values) -> list[str]:
    """Say which samples of its datasets a run took, if not all."""
    if given.get("first") is not None:
        return [f"first {given['first']}"]
    if given.get("limit") is not None:
        return [f"{given['limit']} drawn" if given.get("draw") is not None else f"first {given['limit']}"]
    if given.get("pooled") is not None:
        return [f"{given['pooled']} drawn of all datasets"]
    return given.get("samples") or ([f"failed in {given['only_failed']}"] if given.get("only_failed") else [])


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_text(each)}" for name, each in sorted(value.items()))
    if isinstance(value, list | tuple):
        return "+".join(map(_text, value))
    return "" if value is None else _HASH.sub(r"\1", str(value))


def _criteria(lake: Lake) -> dict[tuple[str, str | None], list[str]]:
    """Read the criteria of each snapshot and judge, where its suite tells them apart."""
    of_criteria = lake.frame(METRIC_SNAPSHOTS).filter(pl.col("slice") == "criteria_hash")
    grouped = of_criteria.group_by("snapshot_id", "judge").agg(pl.col("slice_value").unique().sort()).collect()
    return {(snapshot_id, judge): hashes for snapshot_id, judge, hashes in grouped.iter_rows()}


def _moves(lake: Lake) -> Moves:
    """Read when each judge of each suite moved."""
    versions = lake.frame(JUDGE_VERSIONS).filter(pl.col("version") > 1).select("suite", "judge", "version", "since")
    moved = versions.unique().group_by("suite", "judge").agg("since").collect()
    return {(suite, judge): since for suite, judge, since in moved.iter_rows()}


def _judge_version(row: Values, moves: Moves) -> int | None:
    if row["judge"] is None or row["origin"] != "run":
        return None
    judged_at = row["ended_at"] or row["started_at"]
    members = _members(row["judge"])
    return 1 + sum(int(since <= judged_at) for member in members for since in moves.get((row["suite"], member), ()))


def _members(judge: str) -> list[str]:
    return judge.removeprefix(BY_DAWID_SKENE).removeprefix(PANEL).split("+")
