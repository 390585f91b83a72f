"""A run is scored again from the ledger alone."""

import shutil
from pathlib import Path

import polars as pl

from evalake.contracts.tables import RUN_COVERAGE
from evalake.core.configuration import Configuration
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.tasks.rescore import rescore
from evalake.tasks.runtime.context import RunContext


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
