"""A snapshot of a run: the same rows give the same values."""

import shutil
from dataclasses import replace
from pathlib import Path

import polars as pl

from evalake.storage.lake import Lake
from evalake.storage.snapshots import find_snapshot, read_metrics
from evalake.tasks.measure import measure, run_results
from evalake.tasks.runtime.context import RunContext


def test_measuring_again_gives_the_same_values(guard: RunContext, tmp_path: Path) -> None:
    shutil.copytree(guard.lake.uri, tmp_path / "lake")
    copy = replace(guard, lake=Lake(str(tmp_path / "lake")))
    before = find_snapshot(copy.lake, run_id=copy.run_id)["snapshot_id"]
    again = measure(copy)
    values = pl.col("metric", "model", "slice", "slice_value", "value", "n")
    first, second = (read_metrics(copy.lake, each).select(values).sort(pl.all()) for each in (before, again))
    assert first.equals(second)


def test_rows_of_a_run_are_those_of_its_items(guard: RunContext) -> None:
    rows = run_results(guard.lake, guard.suite, guard.run_id, {}).collect()
    assert rows.height == 80
    assert rows["sample_id"].n_unique() == 40
