"""The attempts of runs: a retry of a flow run is another attempt of the same run."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from contracts.contract import ALWAYS, Contract, RowModel
from contracts.rule import Dimension, Kind, Rule, not_negative


class RunAttemptRow(RowModel):
    """One attempt of a run."""

    run_id: str = Field(description="The run.")
    attempt: int = Field(description="Its number, from 1.")
    state: Literal["running", "completed", "incomplete", "failed"] = Field(description="How the attempt ended.")
    started_by: str | None = Field(
        description="Who or what started it: schedule, Prefect UI, API, automation, command line or Python; null where "
        "that is unknown."
    )
    started_at: datetime = Field(description="When it began.")
    ended_at: datetime | None = Field(description="When it ended; null while it runs.")
    calls_made: int = Field(description="Calls answered by a provider in this attempt.")
    calls_from_ledger: int = Field(description="Calls that the ledger answered for other runs before.")
    calls_failed: int = Field(description="Calls given up on in this attempt.")
    cost_usd: float | None = Field(description="What this attempt paid; null where a price is unknown.")
    message: str | None = Field(description="What a person should know about how it ended.")


RUN_ATTEMPTS = Contract(
    "run_attempts",
    RunAttemptRow,
    ("run_id", "attempt"),
    "The attempts of each run: who or what started each, when, what it asked and paid, and how it ended.",
    (
        Rule("attempt_from_one", "attempt", Kind.BETWEEN, {"minimum": 1, "maximum": None}),
        *map(not_negative, ("calls_made", "calls_failed", "cost_usd")),
        Rule("ends_after_start", "started_at", Kind.NOT_ABOVE, {"other": "ended_at"}, dimension=Dimension.CONSISTENCY),
    ),
    replaced_when=ALWAYS,
)
