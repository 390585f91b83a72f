"""A run is scored again from the ledger alone."""

import shutil
from pathlib import Path

import polars as pl
import pytest

from evalake.contracts.tables import RUN_COVERAGE, RUN_ITEMS, RUNS, SNAPSHOTS
from evalake.core.configuration import Configuration
from evalake.reports.coverage import NOT_ASKED
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.tasks.coverage import coverage_of
from evalake.tasks.rescore import rescore
from evalake.tasks.runtime.context import RunContext

pytestmark = pytest.mark.slow


def test_what_came_of_the_items_is_counted_again(audits: RunContext, tmp_path: Path) -> None:
    shutil.copytree(audits.lake.uri, tmp_path / "lake")
    lake = Lake(str(tmp_path / "lake"))
    before = lake.frame(RUN_COVERAGE).filter(run_id=audits.run_id).collect()
    stale = before.with_columns(answered=pl.lit(0, pl.Int64), missing="asked", left_out=pl.lit('{"repeated": 3}'))
    land(lake, RUN_COVERAGE, stale)
    rescore(lake, audits.run_id, Configuration())
    after = lake.frame(RUN_COVERAGE).filter(run_id=audits.run_id).collect().sort("model", "judge", "dataset")
    counts = ("model", "judge", "dataset", "asked", "answered", "missing", "lost_labels")
    assert after.select(counts).equals(before.sort("model", "judge", "dataset").select(counts))
    assert {*after["left_out"]} == {'{"repeated": 3}'}, "what is known of the sources is kept"


def test_items_that_a_cut_off_run_never_asked_are_missing(guard: RunContext, tmp_path: Path) -> None:
    shutil.copytree(guard.lake.uri, tmp_path / "lake")
    lake = Lake(str(tmp_path / "lake"))
    run = lake.frame(RUNS).filter(run_id=guard.run_id).collect()
    there = lake.frame(RUN_ITEMS).filter(run_id=guard.run_id).collect().height
    land(
        lake, RUNS, run.with_columns(origin=pl.lit("run"), state=pl.lit("failed"), items=pl.lit(there + 100, pl.Int64))
    )
    shutil.rmtree(tmp_path / "lake" / RUN_COVERAGE.table)  # which such a run has none of
    run_row = lake.frame(RUNS).filter(run_id=guard.run_id).collect().row(0, named=True)
    counted = coverage_of(lake, run_row)
    assert sum(row.asked for row in counted) == there + 100
    assert sum(row.missing_kinds.get(NOT_ASKED, 0) for row in counted) == 100
    done = rescore(lake, guard.run_id, Configuration())
    assert (done.items, done.unanswered) == (there + 100, 100)
    snapshot = lake.frame(SNAPSHOTS).filter(snapshot_id=done.snapshot_id).collect()
    assert "100 items are missing: the ledger has no reply to them" in snapshot["warnings"][0]
    assert coverage_of(lake, run_row) == counted, "as it is kept"
