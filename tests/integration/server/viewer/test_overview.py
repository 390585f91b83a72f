"""Metric values as the dashboard reads them: each with what tells whether it compares with another."""

import json
from datetime import UTC, datetime
from pathlib import Path

import polars as pl

from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import RUNS
from evalake.server.viewer.overview import metric_history, metric_steps
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.storage.snapshots import Snapshot, land_snapshot
from evalake.storage.sql.query import query
from evalake.suites.registry import all_contracts
from tests.integration.storage.recorded_lake import MODELS, lake_of_nights
from tests.integration.storage.rows import run

SUITE = "command_guard"
NAMED = {"model": "m", "judge": None, "slice": "all", "slice_value": "", "metric": "accuracy", "tier": None}
VALUE = {**NAMED, "value": 0.5, "n": 1, "units": 1, "n_eff": 1.0} | {
    **dict.fromkeys(("se", "ci_low", "ci_high")),
    "reliable": False,
}
TYPES = {"judge": pl.String, "tier": pl.Int64, **dict.fromkeys(("se", "ci_low", "ci_high"), pl.Float64)}


def test_each_value_has_the_datasets_of_its_run(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    chosen = ['r\u00e4t/"1"', "b"]
    of_runs = {
        "whole": ({"s": "1"}, {}),
        "first": ({"s": "2"}, {"limit": 5}),
        "two": ({"b": "3", "a": "4"}, {"samples": None}),
        "drawn": ({"s": "1"}, {"limit": 5, "draw": "stratified"}),
        "chosen": ({"s": "1"}, {"samples": chosen}),
    }
    began = datetime(2026, 11, 1, tzinfo=UTC)
    rows = [
        {**run(name, SUITE, began), "dataset_versions": json.dumps(of), "parameters": json.dumps(parameters)}
        for name, (of, parameters) in of_runs.items()
    ]
    land(lake, RUNS, conform(rows, RUNS))
    for name in (*of_runs, "not in the table"):
        values = pl.DataFrame([VALUE], schema_overrides=TYPES)
        land_snapshot(lake, Snapshot(name, SUITE, {}, "0" * 64, "1", 1, {}, "1"), values)
    points = metric_history(lake, SUITE, ["accuracy"], "all", None).points
    named = {"whole": "s", "first": "s (first 5)", "two": "a+b", "drawn": "s (5 drawn)", "not in the table": None}
    told = {point.run_id: point.datasets for point in points}
    assert (told.pop("chosen") or "").startswith("s (chosen ")
    assert told == named
    (one,) = metric_history(lake, SUITE, ["accuracy"], "all", "first").points
    assert one.datasets == "s (first 5)"
    views = "select run_id, datasets from metric_history"
    by_view = dict(query(lake, all_contracts(), views).iter_rows())
    assert by_view == {point.run_id: point.datasets or "unknown" for point in points}


def test_each_step_between_values_that_mean_the_same_has_its_paired_interval(tmp_path: Path) -> None:
    lake = lake_of_nights(tmp_path)
    history = metric_history(lake, SUITE, ["accuracy"], "all", None)
    first, second, third = history.points
    assert first.series == second.series != third.series
    assert (first.previous_id, second.previous_id, third.previous_id) == (None, first.snapshot_id, None)
    differing = {
        name for name, text in history.series[first.series].items() if text != history.series[third.series][name]
    }
    assert differing == {"datasets"}
    (moved,) = metric_steps(lake, SUITE, "accuracy", "all", MODELS[0], None)
    assert (moved.snapshot_id, moved.previous_id, moved.message) == (second.snapshot_id, first.snapshot_id, None)
    assert (moved.difference, moved.units) == (-5 / 40, 40)
    assert (moved.ci_low or 0) < -5 / 40 < (moved.ci_high or -1)
    assert metric_steps(lake, SUITE, "accuracy", "all", "nobody", None) == []
    of_prompts = metric_steps(lake, SUITE, "accuracy", "prompt_type", None, None)
    assert [(each.slice_value, each.difference) for each in of_prompts] == [("direct", -5 / 40)]
