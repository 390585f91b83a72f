"""The `runs` row: written when a run begins, and again when it ends."""

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl

from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import CALLS, RUNS
from evalake.core.errors import EvalakeError, LakeError, UsageError
from evalake.core.redaction import redact
from evalake.sdk import Dataset
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.tasks.runtime import attempts, progress
from evalake.tasks.runtime.attempts import PATIENCE_SECONDS, Attempt
from evalake.tasks.runtime.context import CODE_VERSION
from evalake.tasks.runtime.heartbeat import beside

ALIVE_SECONDS = 60.0
FIRST_ALIVE_SECONDS = 5.0
ALIVE_SHARE = 0.1
"""How old a running row gets: a tenth of the age of the run, from 5 seconds up to a minute."""
LOST_AFTER = timedelta(minutes=5)  # more than clocks of machines differ


@dataclass(frozen=True)
class Tally:
    """What a run has done so far. An unknown sum is None, and stays None."""

    calls_made: int = 0
    calls_from_ledger: int = 0
    calls_failed: int = 0
    rows_landed: int = 0
    rows_already_present: int = 0
    rows_quarantined: int = 0
    input_tokens: int | None = 0
    output_tokens: int | None = 0
    cost_usd: float | None = 0.0
    cost_usd_avoided: float | None = 0.0
    latency_from_ledger: int = 0
    items_done: int = 0

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(**{name: _plus(getattr(self, name), getattr(other, name)) for name in self.__dataclass_fields__})


@dataclass(frozen=True)
class Run:
    """A run as its row tells it."""

    run_id: str
    suite: str
    origin: str
    parameters: Mapping[str, Any]
    dataset_versions: Mapping[str, str]
    models: Sequence[str]
    judges: Sequence[str]
    samples: int
    items: int
    started_at: datetime
    state: str = "running"
    tally: Tally = field(default_factory=Tally)
    snapshot_id: str | None = None
    flow_run_id: str | None = None
    message: str | None = None
    ended_at: datetime | None = None
    attempt: Attempt | None = None  # the one that is under way; None for what is no flow run, such as an import

    def ended(self, state: str, **changes: Any) -> "Run":
        """Copy the run with these changes, as ended now."""
        return replace(self, state=state, ended_at=datetime.now(UTC), **changes)


logger = logging.getLogger("evalake.runs")

NO_LABELS: Mapping[str, Any] = {"tags": [], "note": None}

_PAID = ("input_tokens", "output_tokens", "cost_usd")

INTERRUPTED = "interrupted; a rerun asks only for what is missing"

interrupted = threading.Event()
"""Whether somebody has interrupted this process: a run that fails from then on failed for that."""

_running: dict[str, tuple[Lake, Run]] = {}


def mark_interrupted() -> None:
    """Mark the runs that this process has begun and not ended."""
    for lake, run in list(_running.values()):
        save(lake, run.ended("failed", message=INTERRUPTED))


def save(lake: Lake, run: Run) -> None:
    """Land the run's row in place of an earlier one."""
    if run.state == "running":
        _running[run.run_id] = (lake, run)
    else:
        _running.pop(run.run_id, None)
    if run.state == "failed" and interrupted.is_set():
        run = replace(run, message=INTERRUPTED)
    row = {
        **{name: getattr(run, name) for name in run.__dataclass_fields__ if name in RUNS.row.model_fields},
        **{name: getattr(run.tally, name) for name in run.tally.__dataclass_fields__ if name in RUNS.row.model_fields},
        "items_done": max(run.tally.items_done, progress.done_of(run.run_id)),
        "parameters": json.dumps(dict(run.parameters), sort_keys=True),
        "dataset_versions": json.dumps(dict(run.dataset_versions), sort_keys=True),
        "models": list(run.models),
        "judges": list(run.judges),
        "alive_at": datetime.now(UTC),
        "code_version": CODE_VERSION,
    }
    rows = conform([row], RUNS)
    rows = counted_by_ledger(lake, rows) if run.state == "failed" else rows
    land(lake, RUNS, rows)
    if run.attempt is not None:
        attempts.write(lake, run.attempt, rows.row(0, named=True))
    if run.state != "running" or run.tally != Tally():
        logger.info("run %s of %s is %s: %s", run.run_id, run.suite, run.state, counts_of(rows.row(0, named=True)))
    if run.message:
        logger.log(logging.INFO if run.state == "completed" else logging.WARNING, run.message)


def counts_of(row: Mapping[str, Any]) -> str:
    """Say in words what a row of RUNS counts."""
    cost = cost_of(row)
    calls = f"{row['calls_made']} calls made, {row['calls_from_ledger']} from the ledger, {row['calls_failed']} failed"
    rows = f"{row['rows_landed']} rows landed, {row['rows_already_present']} already present"
    return f"{calls}; {rows}, {row['rows_quarantined']} in quarantine; cost {cost}"


def cost_of(row: Mapping[str, Any]) -> str:
    """Say what a run cost by its row; where prices are unknown, at least what is known (`ledger.priced`)."""
    if row["cost_usd"] is not None:
        return f"{row['cost_usd']:.4f} USD"
    if row.get("calls_unpriced") is None:
        return "unknown"
    unpriced = f"{row['calls_unpriced']:,} of {row['calls_bought']:,} calls unpriced"
    return f"at least {row['cost_usd_known']:.4f} USD, {unpriced}"


def begin(lake: Lake, run: Run, number: int, started_by: str | None, patience_seconds: float = PATIENCE_SECONDS) -> Run:
    """Write that an attempt of a run begins; returns the run, which began when its first attempt did.

    An earlier attempt that did not write its end is ended. Its process may still be there: it is given the time to see
    that this one has begun, and to end.
    """
    attempt = Attempt(number, started_by, run.started_at)
    known = lake.frame(RUNS).filter(pl.col("run_id") == run.run_id).collect()
    if not known.is_empty():
        run = replace(run, attempt=attempt, started_at=known["started_at"].item())
        if attempts.open_attempts(lake, run.run_id) and known["alive_at"].item() > datetime.now(UTC) - LOST_AFTER:
            save(lake, run)
            attempts.await_end_of_others(lake, run.run_id, attempt.started_at, patience_seconds)
        counted = counted_by_ledger(lake, known)
        attempts.close(lake, counted, attempts.CUT_OFF, pl.col("started_at") != attempt.started_at)
        before = counted.row(0, named=True)
        attempt = replace(attempt, calls_before=before["calls_made"], cost_before=before["cost_usd"])
    run = replace(run, attempt=attempt)
    save(lake, run)
    return run


def give_way(lake: Lake, run: Run) -> bool:
    """End an attempt that a newer one has overtaken, and leave the run's row to that; returns False where none has."""
    assert run.attempt is not None
    try:
        if not attempts.is_overtaken(lake, run.run_id, run.attempt.started_at):
            return False
        counted = counted_by_ledger(lake, lake.frame(RUNS).filter(pl.col("run_id") == run.run_id).collect())
        attempts.close(lake, counted, attempts.OVERTAKEN, pl.col("started_at") == run.attempt.started_at)
    except (LakeError, pl.exceptions.PolarsError, OSError):  # the lake is out of reach: the run's own error says so
        return False
    _running.pop(run.run_id, None)
    logger.warning("run %s: %s; what was answered here is in the ledger", run.run_id, attempts.OVERTAKEN)
    return True


def counted_by_ledger(lake: Lake, rows: pl.DataFrame) -> pl.DataFrame:
    """Count by the ledger what the runs of these rows have asked and paid: a run that was cut off has counted less.

    Where the ledger cannot be read, what was paid is unknown.
    """
    try:
        calls = lake.frame(CALLS).filter(pl.col("run_id").is_in(rows["run_id"].to_list()), pl.col("origin") == "call")
        whole = [pl.when(pl.col(name).null_count() == 0).then(pl.col(name).sum()) for name in _PAID]
        paid = calls.group_by("run_id").agg(pl.len().alias("calls_made"), *whole).collect()
    except (EvalakeError, pl.exceptions.PolarsError, OSError) as error:
        logger.warning("what failed runs have paid is unknown, as the ledger cannot be read: %s", error)
        return rows.with_columns(pl.lit(None, rows.schema[name]).alias(name) for name in _PAID)
    is_asked, has_calls = pl.col("origin") == "run", pl.col("calls_made ledger").is_not_null()
    joined = rows.join(paid, on="run_id", how="left", suffix=" ledger", maintain_order="left")
    taken = [
        pl.when(is_asked & has_calls).then(pl.col(f"{name} ledger")).otherwise(name).cast(rows.schema[name]).alias(name)
        for name in ("calls_made", *_PAID)
    ]
    return joined.with_columns(taken).select(rows.columns)


@contextmanager
def alive(lake: Lake, run: Run, tally: Callable[[], Tally], every_seconds: float = ALIVE_SECONDS) -> Iterator[None]:
    """Give a sign of life, and say how far the run is, at least every minute while the block runs."""
    began = time.monotonic()

    def beat(over: threading.Event) -> None:
        while not over.wait(min(every_seconds, max(FIRST_ALIVE_SECONDS, ALIVE_SHARE * (time.monotonic() - began)))):
            try:
                if run.attempt and attempts.is_overtaken(lake, run.run_id, run.attempt.started_at):
                    return
                save(lake, replace(run, tally=tally()))
            except LakeError as error:
                logger.warning("run %s could not give a sign of life: %s", run.run_id, error)

    with beside(beat, "alive"):
        yield


def run_row(lake: Lake, run_id: str) -> dict[str, Any]:
    """Read the row of a run. Raises UsageError where there is no such run."""
    rows = lake.frame(RUNS).filter(pl.col("run_id") == run_id).collect()
    if rows.is_empty():
        raise UsageError(f"the lake {lake.uri} has no run {run_id}: `evalake runs` lists what there is")
    return rows.row(0, named=True)


def with_lost(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Set the state of rows of RUNS to "lost" where a run's process is gone: killed, or without power."""
    lost = (pl.col("state") == "running") & (pl.col("alive_at") < datetime.now(UTC) - LOST_AFTER)
    return rows.with_columns(state=pl.when(lost).then(pl.lit("lost")).otherwise("state"))


def labels_of(tags: Sequence[str], note: str | None) -> Mapping[str, Any]:
    """Build tags and note of a run as its parameters hold them."""
    return {"tags": [redact(tag) for tag in tags], "note": redact(note) if note else None}


def with_labels(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Add to rows of RUNS the `tags` and the `note` that they were given, which are among their parameters."""
    tags = pl.col("parameters").str.json_path_match("$.tags").str.json_decode(pl.List(pl.String))
    note = pl.col("parameters").str.json_path_match("$.note")
    return rows.with_columns(tags=tags.fill_null([]), note=note)


def tagged(rows: pl.LazyFrame, tag: str | None) -> pl.LazyFrame:
    """Select the rows of `with_labels` that have a tag; all of them where none is named."""
    return rows if tag is None else rows.filter(pl.col("tags").list.contains(tag))


def mark_lost(lake: Lake) -> list[str]:
    """Mark lost runs as failed; returns their ids. One that is alive after all writes its row again within a minute."""
    rows = with_lost(lake.frame(RUNS)).filter(pl.col("state") == "lost").collect()
    if rows.height:
        message = pl.format("lost: no sign of life after {}; a rerun asks only for what is missing", "alive_at")
        failed = rows.with_columns(state=pl.lit("failed"), message=message, ended_at="alive_at")
        counted = counted_by_ledger(lake, failed)
        land(lake, RUNS, counted)
        attempts.close(lake, counted, "lost: no sign of life any more")
    return rows["run_id"].to_list()


def versions_of(datasets: Sequence[Dataset]) -> dict[str, str]:
    """Map dataset names to dataset versions."""
    return {dataset.name: dataset.version for dataset in datasets}


def _plus(left: Any, right: Any) -> Any:
    return None if left is None or right is None else left + right
