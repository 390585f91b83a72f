"""Versions of judges: between one and the next, a judge's answers to the same items moved."""

from datetime import datetime

from pydantic import Field

from contracts.changes import Renamed
from contracts.contract import Contract, RowModel
from contracts.rule import Kind, Rule, hash_rule, is_share, not_blank, not_negative

DAY_IS_DATE = Rule("day_is_date", "day", Kind.MATCHES, {"pattern": "[0-9]{4}-[0-9]{2}-[0-9]{2}"})


class JudgeVersionRow(RowModel):
    """One version of a judge, with the answers that later ones are held against."""

    suite: str = Field(description="The suite whose frozen items were judged.")
    judge: str = Field(description="The judge model.")
    version: int = Field(description="Its number, from 1: a judge's answers moved between one and the next.")
    canary_hash: str = Field(
        description="SHA-256 over the first requests about all frozen items: under other ones, the version goes on "
        "with answers of its own to compare with."
    )
    since: datetime = Field(
        description="From when replies count as of this version: the last canary that found the judge as before. What "
        "was answered before the first version counts as of the first."
    )
    day: str = Field(description="The day whose canary gave the answers that later ones are held to, as 2026-11-22.")
    first_replicate: int = Field(description="The replicate of the first of these answers in the ledger.")
    replicates: int = Field(description="How many there are of each item; their replicates follow the first.")
    items: int = Field(description="How many frozen items there are.")
    p_value: float | None = Field(description="Of the test that found the judge moved; null where none was made.")


JUDGE_VERSIONS = Contract(
    "judge_versions",
    JudgeVersionRow,
    ("suite", "judge", "version", "canary_hash"),
    "Versions of judges: within one, a judge's answers to frozen items stay within their test-retest noise.",
    (
        *map(not_blank, ("suite", "judge")),
        hash_rule("canary_hash"),
        DAY_IS_DATE,
        Rule("version_from_one", "version", Kind.BETWEEN, {"minimum": 1, "maximum": None}),
        *map(not_negative, ("first_replicate", "replicates", "items")),
        is_share("p_value"),
    ),
    changes=(Renamed("judge_epochs", {"epoch": "version"}),),
)
