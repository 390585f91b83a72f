"""The attempts of a run, each with a row in `run_attempts`: a retry of a flow run is a further attempt of the same run.

A run belongs to its newest attempt. A running process of an older attempt finds it here, and issues no more calls.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import polars as pl

from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import RUN_ATTEMPTS
from evalake.core.errors import EvalakeError
from evalake.storage.lake import Lake
from evalake.storage.landing import land

CUT_OFF = "its process has died"
OVERTAKEN = "another process has continued the run"
PATIENCE_SECONDS = 5.0  # for the process of an earlier attempt to end its calls
ATTEMPT_LOOK_SECONDS = 0.2


class OvertakenError(EvalakeError):
    """A newer attempt continues the run."""


@dataclass(frozen=True)
class Attempt:
    """One attempt of a run, with the calls and costs of earlier attempts."""

    number: int
    started_by: str | None
    started_at: datetime
    calls_before: int = 0
    cost_before: float | None = 0.0


def write_attempt(lake: Lake, attempt: Attempt, run: Mapping[str, Any]) -> None:
    """Land the row of an attempt from its run's row of RUNS."""
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


def is_overtaken(lake: Lake, run_id: str, started_at: datetime) -> bool:
    """Tell whether another attempt of a run is newer than the one that began at `started_at`."""
    attempts = lake.frame(RUN_ATTEMPTS).filter(pl.col("run_id") == run_id).sort("attempt")
    newest = attempts.select("started_at").tail(1).collect()
    return not newest.is_empty() and newest.item() != started_at


def require_newest(lake: Lake, run_id: str, started_at: datetime) -> None:
    """Raise OvertakenError where another attempt of a run is newer than the one that began at `started_at`."""
    if is_overtaken(lake, run_id, started_at):
        raise OvertakenError(f"run {run_id}: {OVERTAKEN}")


def open_attempts(lake: Lake, run_id: str) -> list[datetime]:
    """List the start times of a run's open attempts."""
    attempts = lake.frame(RUN_ATTEMPTS).filter(pl.col("run_id") == run_id, pl.col("state") == "running")
    return attempts.select("started_at").collect()["started_at"].to_list()


def await_end_of_others(lake: Lake, run_id: str, started_at: datetime, patience: float) -> None:
    """Wait, at most `patience` seconds, until the attempt that began at `started_at` is the only open one of a run."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline and open_attempts(lake, run_id) != [started_at]:
        time.sleep(ATTEMPT_LOOK_SECONDS)


def close_attempts(lake: Lake, runs: pl.DataFrame, message: str, which: pl.Expr | None = None) -> None:
    """End the open attempts of runs at the last heartbeat of each run.

    Args:
        lake: The lake.
        runs: Rows of RUNS, with calls and costs by the ledger.
        message: The message of the attempts.
        which: A condition on the open attempts; None means all.
    """
    totals = runs.select("run_id", "alive_at", total="calls_made", paid="cost_usd")
    attempts = lake.frame(RUN_ATTEMPTS).filter(pl.col("run_id").is_in(totals["run_id"].to_list())).collect()
    is_open = (pl.col("state") == "running") & (pl.lit(True) if which is None else which)
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
    """Add to rows of RUNS the number of attempts and the starter of the first; null for older rows."""
    attempts = lake.frame(RUN_ATTEMPTS).sort("attempt").group_by("run_id")
    counted = attempts.agg(pl.len().cast(pl.Int64).alias("attempts"), pl.col("started_by").first())
    return rows.join(counted, on="run_id", how="left", maintain_order="left")
