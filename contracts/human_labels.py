"""What people say: a verdict on a sample, the class of a finding, or a score, with who said it and when."""

from datetime import datetime

from pydantic import Field

from contracts.contract import Contract, Row
from contracts.rules import Dimension, Kind, Rule
from contracts.tables import hash_rule, not_blank, not_negative


class HumanLabelRow(Row):
    """One person's word on one result, or on one finding of it. What the person did not say is null."""

    label_id: str = Field(
        description="SHA-256 over suite, result, finding and labeller: a second word replaces the first."
    )
    suite: str = Field(description="The suite.")
    sample_id: str = Field(description="The sample.")
    sample_hash: str = Field(description="The sample's content hash.")
    model: str = Field(description="The subject model.")
    judge: str | None = Field(
        description="The judge whose judgement was shown; null where the label is on the answer alone."
    )
    prompt_type: str | None = Field(description="Which prompt the answer replied to; null where the suite has one.")
    replicate: int = Field(description="Which repeat.")
    prompt_hash: str = Field(description="The subject call's prompt hash.")
    judge_hash: str | None = Field(description="The judge call's prompt hash; null as for judge.")
    finding_id: int | None = Field(description="The finding; null for a word on the result as a whole.")
    verdict: str | None = Field(description="What the answer's verdict is, in the suite's words.")
    target_found: bool | None = Field(description="Whether the answer names the known target.")
    classification: str | None = Field(description="The finding's class, in the suite's words.")
    score: float | None = Field(description="The answer's score, on the suite's scale.")
    root_cause_score: float | None = Field(description="How well the root cause is identified, 0 to 1.")
    attack_vector_score: float | None = Field(description="How valid the attack is, 0 to 1.")
    fix_score: float | None = Field(description="How valid the fix is, 0 to 1.")
    inclusion_probability: float | None = Field(description="With which chance it was drawn; null where it was picked.")
    labeller: str = Field(description="Who said so.")
    labelled_at: datetime = Field(description="When.")
    note: str | None = Field(description="Why they say so.")


_SHARES = ("root_cause_score", "attack_vector_score", "fix_score", "inclusion_probability")

HUMAN_LABELS = Contract(
    "human_labels",
    HumanLabelRow,
    ("label_id",),
    "People's verdicts on samples, findings and scores.",
    (
        *map(hash_rule, ("label_id", "sample_hash", "prompt_hash", "judge_hash")),
        *map(not_blank, ("suite", "sample_id", "model", "labeller", "verdict", "classification")),
        not_negative("replicate"),
        *(Rule(f"{name}_is_share", name, Kind.BETWEEN, {"minimum": 0, "maximum": 1}) for name in _SHARES),
        Rule(
            "drawn_with_some_chance",
            "inclusion_probability",
            Kind.BETWEEN,
            {"minimum": 1e-9, "maximum": None},
            dimension=Dimension.ACCURACY,
        ),
    ),
    replaced_when="new.labelled_at > old.labelled_at",
)
