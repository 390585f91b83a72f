"""The table `quarantine`: rows refused by their contract."""

from datetime import datetime

from pydantic import Field

from contracts.contract import Contract, RowModel
from contracts.rule import hash_rule, not_blank


class QuarantineRow(RowModel):
    """One refused row."""

    batch_id: str = Field(description="The batch in which it was refused.")
    row_key: str = Field(description="SHA-256 over the refused row.")
    run_id: str = Field(description="The run.")
    table_name: str = Field(description="The table it was meant for.")
    origin: str | None = Field(description="Where it came from, such as file and line number.")
    payload: str = Field(description="The row as JSON, or the raw line where it is not JSON.")
    rules: list[str] = Field(description="The rules it broke.")
    reason: str = Field(description="What is wrong, in words.")
    quarantined_at: datetime = Field(description="When.")


QUARANTINE = Contract(
    "quarantine",
    QuarantineRow,
    ("batch_id", "row_key"),
    "Rows refused by their contract, with the rules they broke.",
    (hash_rule("row_key"), not_blank("reason")),
)
