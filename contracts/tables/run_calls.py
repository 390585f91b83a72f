"""The table `run_calls`: what a run asked, by subject and judge."""

from pydantic import Field

from contracts.changes import Added
from contracts.contract import ALWAYS, Contract, RowModel
from contracts.rule import not_blank, not_negative


class RunCallsRow(RowModel):
    """What one run asked about one subject with one judge."""

    run_id: str = Field(description="The run.")
    model: str = Field(description="The subject model.")
    judge: str = Field(description="The judge model; empty where none is involved.")
    calls_made: int = Field(description="Calls answered by a provider in this run, subject and judge together.")
    calls_from_ledger: int = Field(description="Calls that the ledger answered.")
    calls_failed: int = Field(description="Calls given up on.")
    input_tokens: int | None = Field(description="Prompt tokens of the calls made; null where a provider told none.")
    output_tokens: int | None = Field(description="Reply tokens of the calls made; null where a provider told none.")
    cost_usd: float | None = Field(description="What the calls made cost; null where a price is unknown.")
    cost_usd_avoided: float | None = Field(description="What the ledger's replies had cost; null where unknown.")
    latency_from_ledger: int | None = Field(description="Latencies of this run that are of the calls that bought them.")


RUN_CALLS = Contract(
    "run_calls",
    RunCallsRow,
    ("run_id", "model", "judge"),
    "Calls of each run by subject and judge: made, from the ledger, failed. A call that two judges share is in both.",
    (not_blank("model"), not_negative("calls_made"), not_negative("calls_from_ledger"), not_negative("cost_usd")),
    replaced_when=ALWAYS,
    changes=(Added(("latency_from_ledger",)),),
)
