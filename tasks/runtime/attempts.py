"""The attempts of a run, as `run_attempts` keeps them: a retry asks and pays on top of what earlier ones did."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import polars as pl

from contracts.compile.arrow import conform
from contracts.tables import RUN_ATTEMPTS
from storage.lake import Lake
from storage.landing import land

CUT_OFF = "its process was gone"


@dataclass(frozen=True)
class Attempt:
    """One attempt of a run, and what the ones before had asked and paid."""

    number: int
    started_by: str | None
    started_at: datetime
    calls_before: int = 0
    cost_before: float | None = 0.0


def write(lake: Lake, attempt: Attempt, run: Mapping[str, Any]) -> None:
    """Write an attempt as its run stands, whose row of RUNS is given."""
    paid = None if run["cost_usd"] is None or attempt.cost_before is None else run["cost_usd"] - attempt.cost_before
    row = {
        **{name: run[name] for name in ("run_id", "state", "ended_at", "calls_from_ledger", "calls_failed", "message")},
        "attempt": attempt.number,
        "started_by": attempt.started_by,
        "started_at": attempt.started_at,
        "calls_made": max(run["calls_made"] - attempt.calls_before, 0),
        "cost_usd": None if paid is None else max(paid, 0.0),
    }
    land(lake, RUN_ATTEMPTS, conform([row], RUN_ATTEMPTS))


def close(lake: Lake, runs: pl.DataFrame, message: str) -> None:
    """End the open attempts of runs at the last sign of life of each run.

    Args:
        lake: Where the attempts are kept.
        runs: Rows of RUNS, with the calls and costs that the ledger counts.
        message: What is said of the attempts.
    """
    totals = runs.select("run_id", "alive_at", total="calls_made", paid="cost_usd")
    attempts = lake.frame(RUN_ATTEMPTS).filter(pl.col("run_id").is_in(totals["run_id"].to_list())).collect()
    is_open = pl.col("state") == "running"
    before = attempts.filter(~is_open).group_by("run_id").agg(pl.col("calls_made").sum(), pl.col("cost_usd").sum())
    left = attempts.filter(is_open).join(totals, on="run_id").join(before, on="run_id", how="left", suffix="_before")
    ended = left.with_columns(
        state=pl.lit("failed"),
        ended_at=pl.max_horizontal("alive_at", "started_at"),
        calls_made=(pl.col("total") - pl.col("calls_made_before").fill_null(0)).clip(0),
        cost_usd=(pl.col("paid") - pl.col("cost_usd_before").fill_null(0)).clip(0),
        message=pl.lit(message),
    )
    if ended.height:
        land(lake, RUN_ATTEMPTS, conform(ended.select(attempts.columns), RUN_ATTEMPTS))


def with_attempts(lake: Lake, rows: pl.LazyFrame) -> pl.LazyFrame:
    """Rows of RUNS with how many attempts they took and who started the first; null where that was not kept."""
    attempts = lake.frame(RUN_ATTEMPTS).sort("attempt").group_by("run_id")
    counted = attempts.agg(pl.len().cast(pl.Int64).alias("attempts"), pl.col("started_by").first())
    return rows.join(counted, on="run_id", how="left", maintain_order="left")
