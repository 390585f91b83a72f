"""The table `snapshots`: what each metric snapshot was computed from."""

from datetime import datetime

from pydantic import Field

from contracts.contract import Contract, RowModel
from contracts.rule import hash_rule


class SnapshotRow(RowModel):
    """One metric snapshot."""

    snapshot_id: str = Field(description="SHA-256 over what went in: run, pinned versions, definitions, options, seed.")
    run_id: str = Field(description="The run that was measured.")
    suite: str = Field(description="The suite.")
    pinned_versions: str = Field(description="Table name to the version read, as JSON; null: no such table yet.")
    definition_hash: str = Field(description="SHA-256 over the metric definitions.")
    scorer_version: str = Field(description="The version of the rules that turned replies into rows.")
    code_version: str = Field(description="The version of evalake.")
    seed: int = Field(description="The seed of every bootstrap.")
    options: str = Field(description="The suite's options, as JSON.")
    warnings: list[str] = Field(description="What a reader of the numbers must know.")
    created_at: datetime = Field(description="When it was first made.")


SNAPSHOTS = Contract(
    "snapshots",
    SnapshotRow,
    ("snapshot_id",),
    "Snapshots: the run, the pinned version of every input table, the metric definitions, the seed.",
    (hash_rule("snapshot_id"), hash_rule("definition_hash")),
)
