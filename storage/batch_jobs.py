"""The states of batch jobs: each is a revision, which exactly one process can add, and their requests.

A process that acts on a job first adds a revision with its own run as holder. Who finds the revision taken leaves the
job to the other process. So no job is submitted, or its replies landed, by two.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

import polars as pl

from evalake.contracts.contract import Row
from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import BATCH_JOBS, BATCH_REQUESTS, RUNS
from evalake.core.errors import EvalakeError
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.storage.ledger import Key

OPEN = ("planned", "submitting", "submitted", "cancelling", "collected")
"""The states of jobs about which there is something to do."""
AWAITED = ("planned", "submitting", "submitted")
"""The states of jobs whose replies a run waits for."""
UNDER_WAY = (*AWAITED, "cancelling")
"""The states of jobs whose replies may still come."""


class JobTakenError(EvalakeError):
    """Another process has changed the job meanwhile."""


@dataclass(frozen=True, slots=True)
class Job:
    """A batch job in its newest state: its row of BATCH_JOBS."""

    job_id: str
    revision: int
    run_id: str
    holder_run: str
    model: str
    endpoint: str
    state: str
    provider_id: str | None
    provider_state: str | None
    input_file: str | None
    requests: int
    done: int
    failed: int
    submitted_at: datetime | None
    expires_at: datetime | None
    message: str | None
    changed_at: datetime

    @property
    def stands_at(self) -> str:
        """Its state; the provider's word while the provider has it."""
        return self.provider_state if self.state == "submitted" and self.provider_state else self.state

    @property
    def progress(self) -> str:
        """How far it is, in words."""
        until = f" until {self.expires_at:%Y-%m-%d %H:%M} UTC" if self.expires_at and self.state in AWAITED else ""
        failed = f", {self.failed:,} failed" if self.failed else ""
        why = f" ({self.message})" if self.message else ""
        done = f"{self.done:,} of {self.requests:,} answered"
        return f"{self.job_id} {self.model}: {self.stands_at}, {done}{failed}{until}{why}"


def newest(lake: Lake) -> pl.LazyFrame:
    """Select the newest state of each job, the oldest job first."""
    states = lake.frame(BATCH_JOBS).sort("revision", descending=True).unique("job_id", keep="first")
    return states.sort("submitted_at", "job_id", nulls_last=True)


def jobs(lake: Lake, *which: pl.Expr) -> list[Job]:
    """Read jobs in their newest states."""
    return [Job(**row) for row in newest(lake).filter(*which).collect().iter_rows(named=True)]


def jobs_of(lake: Lake, run_id: str) -> list[Job]:
    """Read the jobs of a run."""
    return jobs(lake, pl.col("run_id") == run_id)


def models_with_jobs(lake: Lake) -> frozenset[str]:
    """List the models that have open jobs."""
    there = lake.exists(BATCH_JOBS)
    return frozenset(job.model for job in jobs(lake, pl.col("state").is_in(OPEN))) if there else frozenset()


def waiting_runs(lake: Lake) -> list[str]:
    """List the runs that await jobs, or that waited for jobs whose replies another run has landed."""
    awaited = newest(lake).filter(pl.col("state").is_in(AWAITED)).select("run_id")
    waited = lake.frame(RUNS).filter(pl.col("message").str.starts_with("waiting: "), state="incomplete")
    cancelled = lake.frame(BATCH_JOBS).filter(state="cancelling")
    landed = waited.join(cancelled, on="run_id", how="anti").select("run_id")
    return pl.concat([awaited, landed]).unique().collect()["run_id"].to_list()


_UNSUBMITTED: dict[str, Any] = {
    **dict.fromkeys(("provider_id", "provider_state", "submitted_at", "expires_at")),
    "state": "planned",
    "failed": 0,
}


def planned(job_id: str, run_id: str, model: str, endpoint: str, requests: int) -> Job:
    """Make a job in its first state."""
    of_run: dict[str, Any] = {
        "job_id": job_id,
        "run_id": run_id,
        "holder_run": run_id,
        "model": model,
        "endpoint": endpoint,
    }
    first: dict[str, Any] = {"revision": 0, "requests": requests, "done": 0, "input_file": None, "message": None}
    return Job(**of_run, **first, **_UNSUBMITTED, changed_at=datetime.now(UTC))


def put_off(lake: Lake, job: Job, why: str | None) -> Job:
    """Add a state to a job that its provider refused for now: it is as if never submitted."""
    return advance(lake, job, **_UNSUBMITTED, message=why)


def begin(lake: Lake, job: Job, requests: Sequence[Row]) -> None:
    """Land a job that is to be submitted: first its requests, then its first state, which makes it count."""
    land(lake, BATCH_REQUESTS, conform([{**row, "job_id": job.job_id} for row in requests], BATCH_REQUESTS))
    _land(lake, job)


def advance(lake: Lake, job: Job, **changes: Any) -> Job:
    """Add the next state of a job, and return it. Raises JobTakenError where another process was first."""
    following = replace(job, revision=job.revision + 1, changed_at=datetime.now(UTC), **changes)
    _land(lake, following)
    return following


def require_newest(lake: Lake, job: Job) -> None:
    """Raise JobTakenError where another process has added a state to the job since."""
    if jobs(lake, pl.col("job_id") == job.job_id, pl.col("revision") > job.revision):
        raise _taken(job)


def _land(lake: Lake, job: Job) -> None:
    if not land(lake, BATCH_JOBS, conform([asdict(job)], BATCH_JOBS)).inserted:
        raise _taken(job)


def _taken(job: Job) -> JobTakenError:
    return JobTakenError(f"another process has changed the batch job {job.job_id}")


def requests_of(lake: Lake, job_id: str) -> list[dict[str, Any]]:
    """Read the requests of a job that are open, in the order of their ids."""
    rows = lake.frame(BATCH_REQUESTS).filter(pl.col("job_id") == job_id, pl.col("state") == "open")
    return rows.sort("request_id").collect().rows(named=True)


def end_requests(lake: Lake, rows: Iterable[Row]) -> None:
    """Land requests with what became of them."""
    land(lake, BATCH_REQUESTS, conform(list(rows), BATCH_REQUESTS))


def states_of(lake: Lake, run_id: str, models: Collection[str]) -> dict[Key, tuple[str, str | None]]:
    """Read what is known of requests to models: those of any open job, and those that failed in a job of this run.

    Returns:
        By call: `open`, `failed` or `refused`, with its message. Of several jobs with one call, an open one counts.
    """
    known = newest(lake).filter(pl.col("model").is_in(sorted(models))).select("job_id", "run_id", job_state="state")
    is_open = (pl.col("state") == "open") & pl.col("job_state").is_in(UNDER_WAY)
    has_failed = pl.col("state").is_in(["failed", "refused"]) & (pl.col("run_id") == run_id)
    rows = lake.frame(BATCH_REQUESTS).join(known, on="job_id").filter(is_open | has_failed).sort(is_open)
    found = rows.select("prompt_hash", "replicate", "endpoint", "state", "message").collect()
    return {Key(*key): (state, message) for *key, state, message in found.iter_rows()}
