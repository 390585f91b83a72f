"""A run that shows that a metric left its beginning says so as an event, and no other run does."""

from datetime import timedelta
from typing import Any

import polars as pl
import pytest

from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import METRIC_SNAPSHOTS, RUNS, SNAPSHOTS
from evalake.storage.landing import land
from evalake.tasks.runtime import artifacts
from tests.integration.flows.workplace import Workplace

EARLIER, LIKE_NOW = 16, 4
"""Nights before the first run: at a third of its value, then at its value."""


def test_the_run_that_shows_a_change_says_so(work: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[dict[str, Any]] = []
    monkeypatch.setattr(artifacts, "emit_event", lambda event, **more: told.append({"event": event, **more}))
    dataset = work.dataset(20)
    first = work.run(dataset)
    for contract in (METRIC_SNAPSHOTS, SNAPSHOTS, RUNS):
        rows = work.rows(contract).filter(run_id=first["run_id"])
        nights = [_night(rows, night) for night in range(EARLIER + LIKE_NOW)]
        land(work.lake, contract, conform(pl.concat(nights).to_dicts(), contract))
    assert told == []
    second = work.run(dataset)
    changed = [each for each in told if each["event"] == "evalake.trend.changed"]
    assert "malicious_detection_rate of hosted_vllm/guard is higher since" in changed[0]["payload"]["message"]
    assert {each["payload"]["message"].count("run night-16") for each in changed} == {1}
    assert second["run_id"] != first["run_id"]


def _night(rows: pl.DataFrame, night: int) -> pl.DataFrame:
    """The same rows as those of an earlier night."""
    before = timedelta(days=EARLIER + LIKE_NOW - night)
    times = [name for name in ("created_at", "started_at", "ended_at", "measured_at") if name in rows.columns]
    name = pl.lit(f"night-{night:02d}")
    rows = rows.with_columns(pl.col(times) - before, run_id=name, snapshot_id=name)
    if "row_key" not in rows.columns:
        return rows
    key, share = pl.col("row_key").str.slice(8) + f"{night:08d}", 1 if night >= EARLIER else 3
    return rows.with_columns(row_key=key, value=pl.col("value") / share)
