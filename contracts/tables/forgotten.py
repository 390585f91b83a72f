"""The table `forgotten`: what was removed for good, named by hashes alone."""

from datetime import datetime

from pydantic import Field

from contracts.contract import ALWAYS, Contract, RowModel
from contracts.rule import hash_rule, not_blank, not_negative


class ForgottenRow(RowModel):
    """Rows of one table that were removed, or are still to be."""

    table_name: str = Field(description="The table.")
    row_hash: str = Field(
        description="What is removed from it: a sample's content hash, a request's prompt hash, or the key of a row."
    )
    requested_at: datetime = Field(description="When it was asked for.")
    first_version: int | None = Field(
        description="The table's first version without it; earlier ones are gone. Null until the removal is done."
    )


FORGOTTEN = Contract(
    "forgotten",
    ForgottenRow,
    ("table_name", "row_hash"),
    "What `evalake forget` removed, by hash: never imported or asked about again.",
    (not_blank("table_name"), hash_rule("row_hash"), not_negative("first_version")),
    replaced_when=ALWAYS,
)
