"""The row of a run in `runs`, written at its beginning, at each heartbeat, and at its end; and its attempts.

A retry of a flow run is a further attempt of the same run, with a row in `run_attempts`. A run belongs to its newest
attempt: a running process of an older one finds it here, and issues no more calls.
"""

import json
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl

from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import BATCH_JOBS, CALLS, RUN_ATTEMPTS, RUNS, SNAPSHOTS
from evalake.core.configuration import whole_address
from evalake.core.errors import EvalakeError, LakeError, UsageError, did_you_mean
from evalake.core.redaction import redact
from evalake.reports.wording import dollars
from evalake.sdk import Dataset, Suite
from evalake.storage.batch_jobs import waiting_runs
from evalake.storage.forget import unfinished
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.storage.snapshots import find_snapshot
from evalake.suites.registry import suite as find_suite
from evalake.tasks.runtime import progress
from evalake.tasks.runtime.context import CODE_VERSION, RunContext
from evalake.tasks.runtime.progress import background_thread

ALIVE_SECONDS = 60.0
FIRST_ALIVE_SECONDS = 5.0
ALIVE_SHARE = 0.1
"""The time between heartbeats: a tenth of the run's age, from 5 seconds to a minute."""
LOST_AFTER = timedelta(minutes=5)  # longer than the clocks of machines differ

OVERTAKEN = "a later attempt has continued the run"
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


@dataclass(frozen=True)
class Tally:
    """The counts of a run so far. An unknown sum is None, and stays None."""

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
        pairs = {name: (getattr(self, name), getattr(other, name)) for name in self.__dataclass_fields__}
        sums: dict[str, Any] = {name: None if None in pair else sum(pair) for name, pair in pairs.items()}
        return Tally(**sums)


@dataclass(frozen=True)
class Run:
    """A run, as its row has it."""

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
    attempt: Attempt | None = None  # the running attempt; None for work outside a flow run, like an import

    def ended(self, state: str, **changes: Any) -> "Run":
        """Copy the run with these changes and an end now; not before its start, where a clock went back."""
        return replace(self, state=state, ended_at=max(datetime.now(UTC), self.started_at), **changes)


logger = logging.getLogger("evalake.runs")

NO_LABELS: Mapping[str, Any] = {"tags": [], "note": None}

_PAID = ("input_tokens", "output_tokens", "cost_usd")

INTERRUPTED = "interrupted; a rerun asks only for what is missing"

interrupted = threading.Event()
"""Set after Ctrl-C: a run that fails after it was interrupted."""

_running: dict[str, tuple[Lake, Run]] = {}
_saving = threading.RLock()  # held until a row has landed, so that no process ends before


def any_running() -> bool:
    """Whether a run of this process has not ended."""
    return bool(_running)


def mark_interrupted() -> None:
    """Mark the running runs of this process as interrupted."""
    with _saving:
        for lake, run in list(_running.values()):
            with suppress(OvertakenError):
                save(lake, run.ended("failed", message=INTERRUPTED))


def save(lake: Lake, run: Run, *, begins_attempt: bool = False) -> None:
    """Land the run's row, which replaces an earlier one, and that of its attempt, which it may begin.

    Raises OvertakenError where a newer attempt has continued the run, also while this process stood still amid its
    commit; LakeError where a run begins while samples are being forgotten: a removal takes every new file away.
    """

    def require() -> None:
        if run.attempt is not None and not begins_attempt:
            require_newest(lake, run.run_id, run.attempt.started_at)

    with _saving:
        _save(lake, run, require)


def _save(lake: Lake, run: Run, require: Callable[[], None]) -> None:
    begins = run.state == "running" and run.run_id not in _running
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
    land(lake, RUNS, rows, require=require)
    if begins and unfinished(lake):
        busy = f"samples of the lake {whole_address(lake.uri)} are being forgotten: wait, or repeat `evalake forget`"
        save(lake, run.ended("failed", message=busy))
        raise LakeError(busy)
    if run.attempt is not None:
        write_attempt(lake, run.attempt, rows.row(0, named=True), require)
    if run.state != "running" or run.tally != Tally():
        logger.info("run %s of %s is %s: %s", run.run_id, run.suite, run.state, counts_of(rows.row(0, named=True)))
    if run.message:
        logger.log(logging.INFO if run.state == "completed" else logging.WARNING, run.message)


def counts_of(row: Mapping[str, Any]) -> str:
    """Describe the counts of a row of RUNS."""
    cost = cost_of(row)
    calls = f"{row['calls_made']} calls made, {row['calls_from_ledger']} from the ledger, {row['calls_failed']} failed"
    rows = f"{row['rows_landed']} rows landed, {row['rows_already_present']} already present"
    return f"{calls}; {rows}, {row['rows_quarantined']} in quarantine; cost {cost}"


def cost_of(row: Mapping[str, Any]) -> str:
    """Describe the cost of a run; with unknown prices, the known part of it (`ledger.priced`)."""
    if row["cost_usd"] is not None:
        return f"{dollars(row['cost_usd'])} USD"
    if row.get("calls_unpriced") is None:
        return "unknown"
    unpriced = f"{row['calls_unpriced']:,} of {row['calls_bought']:,} calls unpriced"
    return f"at least {dollars(row['cost_usd_known'])} USD, {unpriced}"


def begin(lake: Lake, run: Run, number: int, started_by: str | None, patience_seconds: float = PATIENCE_SECONDS) -> Run:
    """Write the beginning of an attempt; returns the run, with the start of its first attempt.

    Ends an earlier open attempt, after a pause for its process, which may be running, to end by itself. `number` counts
    the attempts of the flow run; other flow runs may have continued the run, so it may have had more.
    """
    last = lake.frame(RUN_ATTEMPTS).filter(run_id=run.run_id).select(pl.col("attempt").max()).collect().item()
    attempt = Attempt(max(number, (last or 0) + 1), started_by, run.started_at)
    known = lake.frame(RUNS).filter(pl.col("run_id") == run.run_id).collect()
    if not known.is_empty():
        run = replace(run, attempt=attempt, started_at=known["started_at"].item())
        if open_attempts(lake, run.run_id) and known["alive_at"].item() > datetime.now(UTC) - LOST_AFTER:
            save(lake, run, begins_attempt=True)
            await_end_of_others(lake, run.run_id, attempt.started_at, patience_seconds)
        counted = counted_by_ledger(lake, known)
        close_attempts(lake, counted, OVERTAKEN, pl.col("started_at") != attempt.started_at)
        before = counted.row(0, named=True)
        attempt = replace(attempt, calls_before=before["calls_made"], cost_before=before["cost_usd"])
    run = replace(run, attempt=attempt)
    save(lake, run, begins_attempt=True)
    return run


def criteria_of(context: RunContext, prompt_types: Iterable[str]) -> dict[str, dict[str, str]]:
    """Build the parameter `criteria` of a run: the criteria's hash by prompt type; empty where the suite has none."""
    criteria = context.suite.scoring.criteria
    return {} if criteria is None else {"criteria": {kind: criteria(context.options, kind) for kind in prompt_types}}


def under_its_criteria(lake: Lake, suite: Suite, run_id: str) -> pl.Expr:
    """Select result rows under the criteria that a run was asked by; all where it does not tell, as older ones."""
    rows = lake.frame(RUNS).filter(run_id=run_id).select("parameters").collect()
    known = json.loads(rows["parameters"][0] or "{}").get("criteria") if rows.height else None
    if suite.scoring.criteria is None or not known:
        return pl.lit(True)
    asked = pl.col("prompt_type").replace_strict(known, default=None)
    return asked.is_null() | (pl.col("criteria_hash") == asked)


def amended(lake: Lake, run_id: str, **columns: str) -> None:
    """Set columns of a run's row, as after it was measured again, unless its process writes the row meanwhile."""
    known = lake.frame(RUNS).filter(run_id=run_id).collect()
    _replace(lake, known, known.with_columns(**{name: pl.lit(value) for name, value in columns.items()}))


def _replace(lake: Lake, known: pl.DataFrame, changed: pl.DataFrame) -> bool:
    """Replace the row of a run, unless its process has written it since it was `known`; returns whether it did."""

    def require() -> None:
        run_id = known["run_id"].item()
        if not lake.frame(RUNS).filter(run_id=run_id).collect().equals(known):
            raise OvertakenError(f"run {run_id}: its process has written its row")

    try:
        land(lake, RUNS, changed, require=require)
    except OvertakenError:
        return False
    return True


def yield_to_newer_attempt(lake: Lake, run: Run) -> bool:
    """End an attempt if a newer one has overtaken it, and leave the run's row to that; returns whether it has."""
    assert run.attempt is not None
    try:
        if not is_overtaken(lake, run.run_id, run.attempt.started_at):
            return False
        counted = counted_by_ledger(lake, lake.frame(RUNS).filter(pl.col("run_id") == run.run_id).collect())
        close_attempts(lake, counted, OVERTAKEN, pl.col("started_at") == run.attempt.started_at)
    except (LakeError, pl.exceptions.PolarsError, OSError):  # the run's own error reports the unreachable lake
        return False
    _running.pop(run.run_id, None)
    logger.warning("run %s: %s; the replies so far are in the ledger", run.run_id, OVERTAKEN)
    return True


def counted_by_ledger(lake: Lake, rows: pl.DataFrame) -> pl.DataFrame:
    """Replace calls and costs in rows of RUNS by those of the ledger, which has an interrupted run's last ones.

    Where the ledger cannot be read, costs are unknown.
    """
    try:
        calls = lake.frame(CALLS).filter(pl.col("run_id").is_in(rows["run_id"].to_list()), pl.col("origin") == "call")
        whole = [pl.when(pl.col(name).null_count() == 0).then(pl.col(name).sum()) for name in _PAID]
        paid = calls.group_by("run_id").agg(pl.len().alias("calls_made"), *whole).collect()
    except (EvalakeError, pl.exceptions.PolarsError, OSError) as error:
        logger.warning("the costs of failed runs are unknown, because the ledger cannot be read: %s", error)
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
    """Write the run's row with its progress at least every minute during the block, as a heartbeat."""
    began = time.monotonic()

    def beat(over: threading.Event) -> None:
        while not over.wait(min(every_seconds, max(FIRST_ALIVE_SECONDS, ALIVE_SHARE * (time.monotonic() - began)))):
            try:
                save(lake, replace(run, tally=tally()))
            except OvertakenError:
                return
            except LakeError as error:
                logger.warning("run %s could not write its heartbeat: %s", run.run_id, error)

    with background_thread(beat, "alive"):
        yield


def no_run(lake: Lake, run_id: str) -> UsageError:
    """Make the error that says that a lake has no such run, with the names that resemble it."""
    known = lake.frame(RUNS).select("run_id").collect()["run_id"] if lake.exists(RUNS) else ()
    return UsageError(
        f"the lake {whole_address(lake.uri)} has no run {run_id}"
        f"{did_you_mean(run_id, known) or ': `evalake runs` lists the runs'}"
    )


def run_row(lake: Lake, run_id: str) -> dict[str, Any]:
    """Read the row of a run, with its state now. Raises UsageError for an unknown run."""
    rows = with_state(lake, lake.frame(RUNS).filter(pl.col("run_id") == run_id)).collect()
    if rows.is_empty():
        raise no_run(lake, run_id)
    return rows.row(0, named=True)


def as_scored(lake: Lake, run: Mapping[str, Any]) -> Suite:
    """Find the suite of a run with the scorer that it was measured with last; today's where it was not measured."""
    suite = find_suite(run["suite"], lake)
    if run["snapshot_id"] is None:
        return suite
    return suite.scored_by(find_snapshot(lake, run_id=run["run_id"])["scorer_version"])


def require_measured(lake: Lake, run_id: str) -> None:
    """Raise UsageError for a run of the lake without a snapshot, with its state and what it waits for."""
    rows = with_state(lake, lake.frame(RUNS).filter(pl.col("run_id") == run_id))
    for row in rows.join(lake.frame(SNAPSHOTS), on="run_id", how="anti").collect().iter_rows(named=True):
        why = (row["message"] or "").removeprefix("waiting: ")
        raise UsageError(f"the run {run_id} is {row['state']}, and nothing of it is measured yet{why and f': {why}'}")


def with_lost(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Set the state of rows of RUNS to "lost" where the run's process has died."""
    return rows.with_columns(state=pl.when(_is_lost()).then(pl.lit("lost")).otherwise("state"))


def _is_lost() -> pl.Expr:
    """Tell of rows of RUNS whether the run's process has died."""
    return (pl.col("state") == "running") & (pl.col("alive_at") < datetime.now(UTC) - LOST_AFTER)


def labels_of(tags: Sequence[str], note: str | None) -> Mapping[str, Any]:
    """Build tags and note for a run's parameters."""
    return {"tags": [redact(tag) for tag in tags], "note": redact(note) if note else None}


SETTLE_TAG = "settle-"
"""Begins the tag that all rounds of one `evalake settle` have."""


def with_labels(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Add `tags` and `note` to rows of RUNS, from their parameters."""
    tags = pl.col("parameters").str.json_path_match("$.tags").str.json_decode(pl.List(pl.String))
    note = pl.col("parameters").str.json_path_match("$.note")
    return rows.with_columns(tags=tags.fill_null([]), note=note)


def of_suite(rows: pl.LazyFrame, suite: str | None) -> pl.LazyFrame:
    """Select the rows of a suite; all without one. Raises UsageError for an unknown suite."""
    if suite is None:
        return rows
    known = rows.select(pl.col("suite").unique().sort()).collect()["suite"]
    if suite not in known:
        named = did_you_mean(suite, known) or f": it has {', '.join(known) or 'none yet'}"
        raise UsageError(f"the lake has no run of the suite {suite}{named}")
    return rows.filter(pl.col("suite") == suite)


def tagged(rows: pl.LazyFrame, tag: str | None) -> pl.LazyFrame:
    """Select the rows of `with_labels` with a tag; all without one."""
    return rows if tag is None else rows.filter(pl.col("tags").list.contains(tag))


RESUMES = "when resumed, it asks only for what is missing"
_UNTIL = "%Y-%m-%d %H:%M:%S UTC"


def suspended_until(end: datetime | None) -> str:
    """Write the message of a run that Prefect can resume, until it fails at `end`; None sets no end."""
    return f"suspended; {RESUMES}" if end is None else f"suspended until {end.astimezone(UTC):{_UNTIL}}; {RESUMES}"


def _is_suspended() -> pl.Expr:
    """Tell of rows of RUNS whether somebody can still resume the run."""
    until = (
        pl.col("message").str.extract(r"^suspended until ([^;]+);").str.to_datetime(_UNTIL).dt.replace_time_zone("UTC")
    )
    resumes = pl.col("message").str.contains(rf"^suspended[^;]*; {RESUMES}$")
    return ((pl.col("state") == "failed") & resumes & (until.is_null() | (until > datetime.now(UTC)))).fill_null(False)


AWAITS_NONE = "it awaits no batch job any more: the same command asks what is missing"


def with_state(lake: Lake, rows: pl.LazyFrame) -> pl.LazyFrame:
    """Set the state of rows of RUNS: "lost" as `with_lost` does, "waiting" for batch jobs, "suspended" in Prefect.

    A run that waited and awaits no job any more, since they are cancelled, says so in its message. Calls are counted by
    batch: before the first call that it made is counted, the cost of a running run is unknown.
    """
    is_uncounted = (pl.col("state") == "running") & (pl.col("calls_made") == 0)
    state = pl.when(_is_suspended()).then(pl.lit("suspended")).otherwise("state")
    rows = with_lost(rows).with_columns(state=state, cost_usd=pl.when(~is_uncounted).then("cost_usd"))
    if not lake.exists(BATCH_JOBS):
        return rows
    ended, awaits = pl.col("state") == "incomplete", pl.col("run_id").is_in(waiting_runs(lake))
    waited = ended & ~awaits & pl.col("message").str.starts_with("waiting: ")
    return rows.with_columns(
        state=pl.when(ended & awaits).then(pl.lit("waiting")).otherwise("state"),
        message=pl.when(waited).then(pl.lit(AWAITS_NONE)).otherwise("message"),
    )


def run_of_flow(lake: Lake, flow_run_id: str) -> str | None:
    """Find the run that a flow run has made or continued last; None without one."""
    rows = lake.frame(RUNS).filter(flow_run_id=flow_run_id).select("run_id").collect()["run_id"]
    return None if rows.is_empty() else str(rows[0])


def mark_lost(lake: Lake) -> list[str]:
    """Mark lost runs as failed, all but those that write their row meanwhile; returns their ids."""
    known = lake.frame(RUNS).filter(_is_lost()).collect()
    if known.is_empty():
        return []
    message = pl.format("lost: no heartbeat after {}; a rerun asks only for what is missing", "alive_at")
    ended_at = pl.max_horizontal("alive_at", "started_at")  # a clock may have gone back
    failed = counted_by_ledger(lake, known.with_columns(state=pl.lit("failed"), message=message, ended_at=ended_at))
    pairs = zip(known.iter_slices(1), failed.iter_slices(1), strict=True)
    marked = pl.concat([failed.clear(), *(row for before, row in pairs if _replace(lake, before, row))])
    close_attempts(lake, marked, "lost: no more heartbeats")
    return marked["run_id"].to_list()


def versions_of(datasets: Sequence[Dataset]) -> dict[str, str]:
    """Map dataset names to dataset versions."""
    return {dataset.name: dataset.version for dataset in datasets}


# Attempts.


def write_attempt(lake: Lake, attempt: Attempt, run: Mapping[str, Any], require: Callable[[], None]) -> None:
    """Land the row of an attempt from its run's row of RUNS. Raises what `require` does."""
    paid = None if run["cost_usd"] is None or attempt.cost_before is None else run["cost_usd"] - attempt.cost_before
    row = {
        **{name: run[name] for name in ("run_id", "state", "calls_from_ledger", "calls_failed", "message")},
        "ended_at": run["ended_at"] and max(run["ended_at"], attempt.started_at),
        "attempt": attempt.number,
        "started_by": attempt.started_by,
        "started_at": attempt.started_at,
        "calls_made": max(run["calls_made"] - attempt.calls_before, 0),
        "cost_usd": None if paid is None else max(paid, 0.0),
    }
    land(lake, RUN_ATTEMPTS, conform([row], RUN_ATTEMPTS), require=require)


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
