"""The table `contract_checks`: results of contract rules."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from contracts.contract import Contract, RowModel
from contracts.rule import Kind, Rule, hash_rule


class ContractCheckRow(RowModel):
    """One rule's result on one batch or table version."""

    check_id: str = Field(description="SHA-256 over rule, engine, and what was checked.")
    run_id: str | None = Field(description="The run whose rows were checked; null for `evalake check`.")
    table_name: str = Field(description="The table.")
    table_version: int | None = Field(description="The version that was checked; null for a batch before its commit.")
    batch_id: str | None = Field(description="The batch that was checked; null for a table version.")
    rule_id: str = Field(description="The rule.")
    engine: Literal["polars", "great_expectations", "delta"] = Field(description="What checked it.")
    severity: Literal["warning", "error", "critical"] = Field(description="What a break of the rule means.")
    dimension: str = Field(description="The side of data quality that the rule looks after.")
    passed: bool = Field(description="Whether every row kept the rule.")
    rows_checked: int = Field(description="How many rows were looked at.")
    rows_failed: int = Field(description="How many broke the rule.")
    message: str | None = Field(description="What was found, in words.")
    checked_at: datetime = Field(description="When.")


CONTRACT_CHECKS = Contract(
    "contract_checks",
    ContractCheckRow,
    ("check_id",),
    "Results of contract rules, by batch or table version.",
    (hash_rule("check_id"), Rule("failed_in_checked", "rows_failed", Kind.NOT_ABOVE, {"other": "rows_checked"})),
)
