"""Rows of runs: what is unknown stays unknown, and a run whose process is gone is told and marked."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from contracts.tables import RUNS
from storage.lake import Lake
from storage.landing import land
from tasks.runtime import runs
from tasks.runtime.runs import Run, Tally, cost_of, mark_lost, with_lost

NOW = datetime.now(UTC)


def test_tallies_add_up_and_an_unknown_sum_stays_unknown() -> None:
    whole = Tally(calls_made=1, cost_usd=0.5, input_tokens=7) + Tally(calls_made=2, cost_usd=None, input_tokens=1)
    assert (whole.calls_made, whole.cost_usd, whole.input_tokens) == (3, None, 8)


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"cost_usd": 0.12345}, "0.1235 USD"),
        ({"cost_usd": None}, "unknown"),
        (
            {"cost_usd": None, "cost_usd_known": 2.0, "calls_unpriced": 10, "calls_bought": 1200},
            "at least 2.0000 USD, 10 of 1,200 calls unpriced",
        ),
    ],
)
def test_a_cost_is_told_as_far_as_it_is_known(row: dict[str, Any], told: str) -> None:
    assert cost_of(row) == told


def test_a_run_without_a_sign_of_life_is_lost_and_then_failed(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    for name in ("silent", "alive"):
        runs.save(lake, Run(name, "quiz", "run", {}, {}, ["a/model"], [], 1, 1, NOW - timedelta(hours=2)))
    rows = lake.frame(RUNS).filter(pl.col("run_id") == "silent").collect()
    land(lake, RUNS, rows.with_columns(alive_at=pl.lit(NOW - timedelta(hours=1))))

    def states() -> dict[str, str]:
        return dict(with_lost(lake.frame(RUNS)).select("run_id", "state").collect().iter_rows())

    assert states() == {"silent": "lost", "alive": "running"}
    assert mark_lost(lake) == ["silent"]
    assert states() == {"silent": "failed", "alive": "running"}
    assert mark_lost(lake) == []
