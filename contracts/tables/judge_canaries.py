"""The table `judge_canaries`: what each day's canary found of one judge."""

from datetime import datetime

from pydantic import Field

from contracts.changes import Renamed
from contracts.contract import Contract, RowModel
from contracts.rule import Kind, Rule, hash_rule, is_share, not_blank, not_negative
from contracts.tables.judge_versions import DAY_IS_DATE


class JudgeCanaryRow(RowModel):
    """What one day's canary found of one judge."""

    suite: str = Field(description="The suite whose frozen items were judged.")
    judge: str = Field(description="The judge model.")
    day: str = Field(description="The day, as 2026-11-22.")
    canary_hash: str = Field(description="SHA-256 over the first requests about all frozen items.")
    version: int = Field(description="The version that the judge was found in; the new one where it moved.")
    moved: bool = Field(description="Whether its answers moved beyond their test-retest noise.")
    items: int = Field(description="How many frozen items were judged.")
    answers: int = Field(description="How often each was judged: once, or more where the first answers looked moved.")
    distance: float | None = Field(
        description="Mean distance of these answers from the version's, 0 to 1; null where they are its first."
    )
    noise: float | None = Field(description="Mean distance among the version's own answers to one item, 0 to 1.")
    shift: float | None = Field(description="How far the mean answer moved from the version's, 0 to 1; null as above.")
    p_value: float | None = Field(description="How likely a change like this is while nothing moved; null as above.")
    run_id: str = Field(description="The run that asked, as in the ledger.")
    flow_run_id: str | None = Field(description="The Prefect flow run.")
    judged_at: datetime = Field(description="When.")


JUDGE_CANARIES = Contract(
    "judge_canaries",
    JudgeCanaryRow,
    ("suite", "judge", "day"),
    "Canaries: the same frozen items judged again, day after day, and whether the judge's answers moved.",
    (
        *map(not_blank, ("suite", "judge")),
        hash_rule("canary_hash"),
        DAY_IS_DATE,
        Rule("version_from_one", "version", Kind.BETWEEN, {"minimum": 1, "maximum": None}),
        *map(not_negative, ("items", "answers")),
        *map(is_share, ("distance", "noise", "shift", "p_value")),
    ),
    changes=(Renamed(columns={"epoch": "version"}),),
)
