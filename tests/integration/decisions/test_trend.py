"""Values that mean the same are one series, as the view `metric_history` has it; a step is compared pair by pair."""

import json
from collections.abc import Mapping
from datetime import timedelta
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl
import pytest

from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import METRIC_SNAPSHOTS, RUN_COVERAGE, RUNS, SNAPSHOTS
from evalake.contracts.tables.metrics import JUDGE_VERSIONS
from evalake.decisions.sides import NotComparableError
from evalake.decisions.trend import Trend, headline_changes, step, trend
from evalake.server.viewer.overview import metric_history
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.storage.snapshots import Snapshot, land_snapshot
from evalake.storage.sql.query import query
from evalake.suites.registry import all_contracts
from tests.cases import cases_beside
from tests.integration.cli.command import evalake_here
from tests.integration.storage.recorded_lake import MODELS, lake_of_nights
from tests.integration.storage.rows import day, measured, run, snapshot_of

CASES = cases_beside(__file__, "series.json")


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(str(tmp_path / "lake"))


def read(lake: Lake) -> Trend:
    snapshots = lake.frame(SNAPSHOTS).select("snapshot_id", "run_id", "created_at", "definition_hash", "scorer_version")
    runs = lake.frame(RUNS).select("run_id", "origin", "started_at", "ended_at", "dataset_versions", "parameters")
    joined = lake.frame(METRIC_SNAPSHOTS).join(snapshots, on="snapshot_id").join(runs, on="run_id", how="left")
    return trend(lake, joined.sort("created_at", "row_key").collect())


def test_a_series_is_what_the_view_joins(lake: Lake) -> None:
    moved = {"suite": "s", "judge": "bob", "version": 2, "canary_hash": "0" * 64, "since": day(13), "day": "2026-11-13"}
    row = {**moved, "first_replicate": 0, "replicates": 5, "items": 1, "p_value": 0.0}
    land(lake, JUDGE_VERSIONS, conform([row], JUDGE_VERSIONS))
    parameters = CASES["rows"]
    judges = ("bob", "panel:alice+bob")
    kinds = list(product(parameters, ({"d": "1" * 64}, {"d": "2" * 64})))
    runs = []
    for number, (asked, versions) in enumerate(kinds * 2):
        texts = {"parameters": json.dumps(asked, sort_keys=True), "dataset_versions": json.dumps(versions)}
        runs.append(run(f"run{number}", "s", day(1 + number // 2)) | texts)
    land(lake, RUNS, conform(runs, RUNS))
    for number in range(len(runs)):
        snapshot_of(lake, f"run{number}", {judge: 2.0 * number + place for place, judge in enumerate(judges)})
    sql = "select snapshot_id, judge, previous_value from metric_history"
    of_view = {(at, judge): value for at, judge, value in query(lake, all_contracts(), sql).iter_rows()}
    values = read(lake).values
    value_of = {(at, judge): value for at, judge, value in values.select("snapshot_id", "judge", "value").iter_rows()}
    assert len(value_of) == 2 * len(kinds) * len(judges)
    earlier = values.select("snapshot_id", "judge", "previous_id").iter_rows()
    before = {(at, judge): value_of.get((previous, judge)) for at, judge, previous in earlier}
    assert before == of_view
    assert len(value_of) / 4 <= sum(value is not None for value in before.values()) < len(value_of) / 2


def test_a_series_says_under_what_its_values_were_measured(lake: Lake) -> None:
    asked = {"prompt_types": ["direct", "chain_of_thought"], "replicates": 3, "first": 5}
    texts = {"parameters": json.dumps(asked), "dataset_versions": json.dumps({"d": "1" * 64})}
    measured(lake, "run", "bob", day(1), 0.5, **texts)
    (conditions,) = read(lake).conditions.values()
    assert conditions == CASES["under"]


def test_an_unknown_value_is_passed_over_and_a_lost_run_stands_alone(lake: Lake) -> None:
    for number, value in ((1, 0.1), (2, None), (3, 0.3)):
        measured(lake, f"run{number}", "bob", day(number), value)
    whole = read(lake).values.sort("created_at")
    assert whole["series"].n_unique() == 1
    assert whole["previous_id"].to_list() == [None, None, whole["snapshot_id"][0]]
    lost = whole.with_columns(pl.lit(None, dtype=pl.String).alias("dataset_versions"), parameters=pl.lit(None))
    assert trend(lake, lost.drop("series", "previous_id")).values["previous_id"].to_list() == [None] * 3


def nights(
    lake: Lake,
    values: list[float],
    suite: str = "command_guard",
    of: Mapping[str, Any] = MappingProxyType({}),
    beside: Mapping[str, list[float]] = MappingProxyType({}),
) -> list[str]:
    """Runs of a schedule, one a night, each with a value of a headline metric, and of others `beside` it."""
    names = [f"night-{number}" for number in range(len(values))]
    began = [day(1) + timedelta(days=number) for number in range(len(values))]
    rows = [
        {**run(name, suite, at), "parameters": json.dumps({"schedule": "nightly"})}
        for name, at in zip(names, began, strict=True)
    ]
    land(lake, RUNS, conform(rows, RUNS))
    row: dict[str, Any] = {"model": "m", "judge": None, "slice": "all", "slice_value": "", "tier": None}
    row |= {"metric": "balanced_accuracy", **of}
    row |= {"n": 200, "units": 200, "n_eff": 200.0, **dict.fromkeys(("se", "ci_low", "ci_high")), "reliable": True}
    types = {"judge": pl.String, "tier": pl.Int64, **dict.fromkeys(("se", "ci_low", "ci_high"), pl.Float64)}
    for night, (name, value) in enumerate(zip(names, values, strict=True)):
        others = [{**row, "metric": metric, "value": each[night]} for metric, each in beside.items()]
        frame = pl.DataFrame([{**row, "value": value}, *others], schema_overrides=types)
        land_snapshot(lake, Snapshot(name, suite, {}, "0" * 64, "1", 1, {}, "1"), frame)
    return names


def test_a_scheduled_series_that_left_its_beginning_says_since_when(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(4)
    names = nights(lake, [*(random.binomial(200, 0.9, 16) / 200), *(random.binomial(200, 0.75, 9) / 200)])
    (change,) = headline_changes(lake)
    assert (change.since_run_id, change.model, change.metric) == (names[16], "m", "balanced_accuracy")
    assert names.index(change.run_id) <= 23
    assert "is lower since 2026-11-17 (run night-16)" in change.sentence
    assert headline_changes(lake, ["session_review"]) == ()
    assert headline_changes(lake, ["command_guard"], names[3]) == (change,)
    monkeypatch.setattr("evalake.decisions.trend.WATCHED", 9)
    assert headline_changes(lake) == ()  # of the newest nine, no run is apart from a beginning of ten
    monkeypatch.undo()
    listed = evalake_here("runs", "--lake", lake.uri, "--json", folder=tmp_path)
    told = {row["run_id"]: row["changed"] for row in json.loads(listed.stdout)}
    assert {name for name, sentences in told.items() if sentences} == {change.run_id}
    assert told[change.run_id] == [change.sentence]
    (seen,) = metric_history(lake, "command_guard", (), "all", None).changes
    assert (seen.message, seen.since_run_id) == (change.sentence, names[16])


def test_an_unchanged_series_is_quiet(lake: Lake) -> None:
    nights(lake, list(np.random.default_rng(5).binomial(200, 0.9, 25) / 200))
    assert headline_changes(lake) == ()


def test_what_is_missing_since_then_is_no_change(lake: Lake) -> None:
    """The model's server fails on items that it would get wrong, from one night on."""
    names = nights(lake, [*np.random.default_rng(4).binomial(200, 0.8, 16) / 200, *[1.0] * 9])
    assert headline_changes(lake) != ()
    none: dict[str, Any] = dict.fromkeys(("without_verdict_kinds", "missing_kinds", "left_out", "refused"), "{}")
    of = {
        "model": "m",
        "judge": "",
        "dataset": "d",
        "without_verdict": 0,
        "source_rows": 200,
        "lost_labels": [],
        **none,
    }
    rows = [{**of, "run_id": name, "asked": 200, "answered": 156, "missing": 44} for name in names[16:]]
    land(lake, RUN_COVERAGE, conform(rows, RUN_COVERAGE))
    assert headline_changes(lake) == ()


@pytest.mark.parametrize(("undecided", "changed"), [(0.3, 0), (0.0, 1)])
def test_what_a_panel_left_undecided_since_then_is_no_change(lake: Lake, undecided: float, changed: int) -> None:
    """A panel's rate rises where its judges no longer agree on the targets that one of them misses."""
    rates = [*np.random.default_rng(4).binomial(200, 0.7, 16) / 200, *[0.95] * 9]
    panel = {"judge": "panel:a+b", "metric": "target_detection_rate"}
    open_shares = [0.0] * 16 + [undecided] * 9
    nights(lake, rates, "solidity_audit", panel, {"panel_undecided_rate": open_shares})
    assert len(headline_changes(lake)) == changed


def test_a_step_is_the_paired_difference_on_the_samples_of_both(tmp_path: Path) -> None:
    nights = lake_of_nights(tmp_path)
    first, second, third = nights.frame(SNAPSHOTS).sort("created_at").collect()["snapshot_id"]
    rows = {(row["slice"], row["slice_value"]): row for row in step(nights, second, first, MODELS[0], "accuracy")}
    whole = rows["all", ""]
    assert whole["difference"] == pytest.approx(-5 / 40)
    assert whole["ci_low"] < -5 / 40 < whole["ci_high"]
    assert (whole["units"], whole["flips_to_a"], whole["flips_to_b"]) == (40, 0, 5)
    assert {name for name, _ in rows} >= {"dataset", "prompt_type"}
    with pytest.raises(NotComparableError, match="versions of mine differ"):
        step(nights, third, first, MODELS[0], "accuracy")
