"""Metric values as the dashboard reads them: each with what tells whether it compares with another."""

import json
from datetime import UTC, datetime
from pathlib import Path

import polars as pl

from contracts.compile.arrow import conform
from contracts.tables import RUNS
from service.viewer.overview import metric_history
from storage.lake import Lake
from storage.landing import land
from storage.snapshots import Snapshot, land_snapshot
from storage.sql.query import query
from suites.registry import all_contracts
from tests.storage.rows import run

SUITE = "command_guard"
NAMED = {"model": "m", "judge": None, "slice": "all", "slice_value": "", "metric": "accuracy", "tier": None}
VALUE = {**NAMED, "value": 0.5, "n": 1, "units": 1, "n_eff": 1.0} | {
    **dict.fromkeys(("se", "ci_low", "ci_high")),
    "reliable": False,
}
TYPES = {"judge": pl.String, "tier": pl.Int64, **dict.fromkeys(("se", "ci_low", "ci_high"), pl.Float64)}


def test_each_value_has_the_datasets_of_its_run(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    of_runs = {"whole": ({"s": "1"}, None), "first": ({"s": "2"}, 5), "two": ({"b": "3", "a": "4"}, None)}
    began = datetime(2026, 11, 1, tzinfo=UTC)
    rows = [
        {**run(name, SUITE, began), "dataset_versions": json.dumps(of), "parameters": json.dumps({"limit": limit})}
        for name, (of, limit) in of_runs.items()
    ]
    land(lake, RUNS, conform(rows, RUNS))
    for name in (*of_runs, "not in the table"):
        values = pl.DataFrame([VALUE], schema_overrides=TYPES)
        land_snapshot(lake, Snapshot(name, SUITE, {}, "0" * 64, "1", 1, {}, "1"), values)
    points = metric_history(lake, SUITE, ["accuracy"], "all", None).points
    named = {"whole": "s", "first": "s (first 5)", "two": "a+b", "not in the table": None}
    assert {point.run_id: point.datasets for point in points} == named
    (one,) = metric_history(lake, SUITE, ["accuracy"], "all", "first").points
    assert one.datasets == "s (first 5)"
    views = "select run_id, datasets from metric_history"
    told = dict(query(lake, all_contracts(), views).iter_rows())
    assert told == {**named, "not in the table": "unknown"}
