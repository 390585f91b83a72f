"""Runs whose process is gone, or whose row says that it lives."""

from datetime import UTC, datetime, timedelta

import polars as pl

from evalake.contracts.tables import RUNS
from evalake.storage.landing import land
from evalake.tasks.runtime import runs
from evalake.tasks.runtime.runs import Run
from tests.integration.flows.workplace import Workplace

LONG_AGO = datetime.now(UTC) - timedelta(hours=2)


def begin(work: Workplace, run_id: str, silent_since: datetime | None = None) -> Run:
    """A run that has begun and not ended, with its last sign of life now or at the moment given."""
    run = Run(run_id, "command_guard", "run", {}, {}, ["a/model"], [], 1, 1, LONG_AGO)
    runs.save(work.lake, run)
    if silent_since is not None:
        rows = work.rows(RUNS).filter(pl.col("run_id") == run_id)
        land(work.lake, RUNS, rows.with_columns(alive_at=pl.lit(silent_since)))
    return run


def states(work: Workplace) -> dict[str, str]:
    """The states of all runs, by id."""
    return dict(work.rows(RUNS).select("run_id", "state").iter_rows())
