"""Maintenance of a lake: a dry run changes nothing, and a run whose process is gone is marked."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from shutil import copytree

import polars as pl
import pytest

from evalake.admin.maintain import maintain
from evalake.contracts.tables import RUNS
from evalake.core.configuration import Retention
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.tasks.runtime import runs
from evalake.tasks.runtime.context import RunContext
from evalake.tasks.runtime.runs import Run

pytestmark = pytest.mark.slow

NOTHING_ELSE = Retention(reports_days=None, results_days=None, flow_runs_days=None)


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_dry_run_tells_of_the_same_tables_and_changes_none(guard: RunContext, tmp_path: Path, dry_run: bool) -> None:
    copytree(guard.lake.uri, tmp_path / "lake")
    lake = Lake(str(tmp_path / "lake"))
    long_ago = datetime.now(UTC) - timedelta(hours=2)
    runs.save(lake, Run("gone", "command_guard", "run", {}, {}, ["a/model"], [], 1, 1, long_ago))
    gone = lake.frame(RUNS).filter(pl.col("run_id") == "gone").collect()
    land(lake, RUNS, gone.with_columns(alive_at=pl.lit(long_ago)))
    done = maintain(lake, NOTHING_ELSE, dry_run)
    assert done.expired == []
    assert {table.table for table in done.tables} >= {"runs", "calls", "command_guard_results"}
    states = dict(lake.frame(RUNS).select("run_id", "state").collect().iter_rows())
    assert states["gone"] == ("running" if dry_run else "failed")
