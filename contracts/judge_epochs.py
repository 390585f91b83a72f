"""What is known of how steady judges are: each day's canary, and the epochs between which their answers moved."""

from datetime import datetime

from pydantic import Field

from contracts.contract import Contract, Row
from contracts.rules import Dimension, Kind, Rule
from contracts.tables import hash_rule, not_blank, not_negative

_DAY = Rule("day_is_date", "day", Kind.MATCHES, {"pattern": "[0-9]{4}-[0-9]{2}-[0-9]{2}"})


class JudgeEpochRow(Row):
    """One epoch of a judge, with the answers that later ones are held against."""

    suite: str = Field(description="The suite whose frozen items were judged.")
    judge: str = Field(description="The judge model.")
    epoch: int = Field(description="Its number, from 1: a judge's answers moved between one and the next.")
    canary_hash: str = Field(
        description="SHA-256 over the first requests about all frozen items: under other ones, the epoch goes on with "
        "answers of its own to compare with."
    )
    since: datetime = Field(
        description="From when replies count as of this epoch: the last canary that found the judge as before. What "
        "was answered before the first epoch counts as of the first."
    )
    day: str = Field(description="The day whose canary gave the answers that later ones are held to, as 2026-11-22.")
    first_replicate: int = Field(description="The replicate of the first of these answers in the ledger.")
    replicates: int = Field(description="How many there are of each item; their replicates follow the first.")
    items: int = Field(description="How many frozen items there are.")
    p_value: float | None = Field(description="Of the test that found the judge moved; null where none was made.")


JUDGE_EPOCHS = Contract(
    "judge_epochs",
    JudgeEpochRow,
    ("suite", "judge", "epoch", "canary_hash"),
    "Epochs of judges: within one, a judge's answers to frozen items stay within their test-retest noise.",
    (
        *map(not_blank, ("suite", "judge")),
        hash_rule("canary_hash"),
        _DAY,
        Rule("epoch_from_one", "epoch", Kind.BETWEEN, {"minimum": 1, "maximum": None}),
        *map(not_negative, ("first_replicate", "replicates", "items")),
        Rule("p_value_is_share", "p_value", Kind.BETWEEN, {"minimum": 0, "maximum": 1}, dimension=Dimension.ACCURACY),
    ),
)


class JudgeCanaryRow(Row):
    """What one day's canary found of one judge."""

    suite: str = Field(description="The suite whose frozen items were judged.")
    judge: str = Field(description="The judge model.")
    day: str = Field(description="The day, as 2026-11-22.")
    canary_hash: str = Field(description="SHA-256 over the first requests about all frozen items.")
    epoch: int = Field(description="The epoch that the judge was found in; the new one where it moved.")
    moved: bool = Field(description="Whether its answers moved beyond their test-retest noise.")
    items: int = Field(description="How many frozen items were judged.")
    answers: int = Field(description="How often each was judged: once, or more where the first answers looked moved.")
    distance: float | None = Field(
        description="Mean distance of these answers from the epoch's, 0 to 1; null where they are the epoch's first."
    )
    noise: float | None = Field(description="Mean distance among the epoch's own answers to one item, 0 to 1.")
    shift: float | None = Field(description="How far the mean answer moved from the epoch's, 0 to 1; null as above.")
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
        _DAY,
        Rule("epoch_from_one", "epoch", Kind.BETWEEN, {"minimum": 1, "maximum": None}),
        *map(not_negative, ("items", "answers")),
        *(
            Rule(f"{name}_is_share", name, Kind.BETWEEN, {"minimum": 0, "maximum": 1}, dimension=Dimension.ACCURACY)
            for name in ("distance", "noise", "shift", "p_value")
        ),
    ),
)
