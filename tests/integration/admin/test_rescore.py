"""A run is scored again from the ledger alone."""

import shutil
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from evalake.contracts.tables import RUN_COVERAGE
from evalake.core.configuration import Configuration
from evalake.core.errors import UsageError
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.storage.snapshots import find_snapshot, read_metrics
from evalake.tasks.rescore import rescore
from evalake.tasks.runtime.context import RunContext

pytestmark = pytest.mark.slow


def test_an_imported_run_is_scored_again_to_the_same_values(audits: RunContext, tmp_path: Path) -> None:
    shutil.copytree(audits.lake.uri, tmp_path / "lake")
    mine = replace(audits, lake=Lake(str(tmp_path / "lake")))
    before = read_metrics(mine.lake, find_snapshot(mine.lake, run_id=mine.run_id)["snapshot_id"])
    done = rescore(mine.lake, mine.run_id, Configuration())
    assert (done.unanswered, done.published.landed.inserted, done.published.quarantined) == (0, 0, 0)
    after = read_metrics(mine.lake, done.snapshot_id)
    columns = ("metric", "model", "judge", "slice", "slice_value", "value", "n")
    assert before.select(columns).sort(columns).equals(after.select(columns).sort(columns))


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


def test_a_run_that_there_is_not_is_named(audits: RunContext) -> None:
    with pytest.raises(UsageError, match="has no run nothing"):
        rescore(audits.lake, "nothing", Configuration())
