"""The tables of data quality: `quarantine`, `contract_checks`, `forgotten`."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from evalake.contracts.contract import ALWAYS, Contract, RowModel
from evalake.contracts.rule import Kind, Rule, hash_rule, not_blank, not_negative


class QuarantineRow(RowModel):
    """One refused row."""

    batch_id: str = Field(description="The batch in which it was refused.")
    row_key: str = Field(description="SHA-256 over the refused row.")
    run_id: str = Field(description="The run.")
    table_name: str = Field(description="The table it was meant for.")
    origin: str | None = Field(description="Its source, like file and line number.")
    payload: str = Field(description="The row as JSON, or the raw line where it is not JSON.")
    rules: list[str] = Field(description="The rules it broke.")
    reason: str = Field(description="The reason, in words.")
    quarantined_at: datetime = Field(description="When.")


QUARANTINE = Contract(
    "quarantine",
    QuarantineRow,
    ("batch_id", "row_key"),
    "Rows refused by their contract, with the rules they broke.",
    (hash_rule("row_key"), not_blank("reason")),
)


class ContractCheckRow(RowModel):
    """One rule's result on one batch or table version."""

    check_id: str = Field(description="SHA-256 over rule, engine, and what was checked.")
    run_id: str | None = Field(description="The run whose rows were checked; null for `evalake check`.")
    table_name: str = Field(description="The table.")
    table_version: int | None = Field(description="The version that was checked; null for a batch before its commit.")
    batch_id: str | None = Field(description="The batch that was checked; null for a table version.")
    rule_id: str = Field(description="The rule.")
    engine: Literal["polars", "great_expectations", "delta"] = Field(description="What checked it.")
    severity: Literal["warning", "error", "critical"] = Field(description="The severity of a broken rule.")
    dimension: str = Field(description="The side of data quality that the rule looks after.")
    passed: bool = Field(description="Whether every row kept the rule.")
    rows_checked: int = Field(description="How many rows were looked at.")
    rows_failed: int = Field(description="How many broke the rule.")
    message: str | None = Field(description="The finding, in words.")
    checked_at: datetime = Field(description="When.")


CONTRACT_CHECKS = Contract(
    "contract_checks",
    ContractCheckRow,
    ("check_id",),
    "Results of contract rules, by batch or table version.",
    (hash_rule("check_id"), Rule("failed_in_checked", "rows_failed", Kind.NOT_ABOVE, {"other": "rows_checked"})),
)


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
