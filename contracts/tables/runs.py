"""The table `runs`: one row a run."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from contracts.changes import Added
from contracts.contract import ALWAYS, Contract, RowModel
from contracts.rule import Dimension, Kind, Rule, not_blank, not_negative


class RunRow(RowModel):
    """One evaluation run."""

    run_id: str = Field(description="The run's name.")
    suite: str = Field(description="The suite that ran.")
    origin: Literal["run", "import"] = Field(description="Models were called, or recorded results were read.")
    state: Literal["running", "completed", "incomplete", "failed"] = Field(
        description="incomplete: too much is missing, or rows were refused; a rerun asks only for what is missing."
    )
    parameters: str = Field(description="What the run was asked for, as JSON.")
    dataset_versions: str = Field(description="Dataset name to dataset version, as JSON.")
    models: list[str] = Field(description="The subject models.")
    judges: list[str] = Field(description="The judge models.")
    samples: int = Field(description="How many samples its datasets hold.")
    items: int = Field(description="How many items it has: sample x model x judge x prompt type x replicate.")
    calls_made: int = Field(description="Calls answered by a provider in this run.")
    calls_from_ledger: int = Field(description="Calls that the ledger answered.")
    calls_failed: int = Field(description="Calls given up on.")
    rows_landed: int = Field(description="Result rows that this run added.")
    rows_already_present: int = Field(description="Result rows that were there already.")
    rows_quarantined: int = Field(description="Rows refused by their contract.")
    input_tokens: int | None = Field(description="Prompt tokens of the calls made; null where a provider told none.")
    output_tokens: int | None = Field(description="Reply tokens of the calls made; null where a provider told none.")
    cost_usd: float | None = Field(description="What this run paid; null where a price is unknown.")
    cost_usd_avoided: float | None = Field(description="What the ledger's replies had cost; null where unknown.")
    snapshot_id: str | None = Field(description="The metric snapshot made of it.")
    flow_run_id: str | None = Field(description="The Prefect flow run.")
    code_version: str = Field(description="The version of evalake.")
    message: str | None = Field(description="What a person should know about how it ended.")
    started_at: datetime = Field(description="When it began.")
    alive_at: datetime = Field(description="When it last gave a sign of life, which it does at least every minute.")
    ended_at: datetime | None = Field(description="When it ended; null while it runs.")
    items_done: int | None = Field(description="Items answered or given up on so far; null in older rows.")


RUNS = Contract(
    "runs",
    RunRow,
    ("run_id",),
    "Evaluation runs: parameters, dataset versions, counts, cost, state, Prefect flow run.",
    (
        not_blank("suite"),
        *map(not_negative, ("samples", "cost_usd")),
        Rule("ends_after_start", "started_at", Kind.NOT_ABOVE, {"other": "ended_at"}, dimension=Dimension.CONSISTENCY),
    ),
    replaced_when=ALWAYS,
    changes=(Added(("items_done",)),),
)
