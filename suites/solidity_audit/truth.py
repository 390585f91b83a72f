"""The ground truth of a contract, as a sample's target holds it."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from core.hashing import canonical_json
from suites.base import Sample
from suites.base.sources import is_storable
from suites.base.validation import Strict
from suites.solidity_audit.taxonomy import normalised

SUITE = "solidity_audit"

Text = Annotated[str, Field(max_length=100_000)]
Line = Annotated[int, Field(ge=1, lt=2**31)]


class GroundTruth(Strict):
    """What is known of a contract: whether it is vulnerable, and how, where and why, as far as anybody said."""

    is_vulnerable: bool
    vulnerability_type: Text | None = None
    severity: Text | None = None
    vulnerable_functions: list[Text] = Field(default_factory=list)
    vulnerable_lines: list[Line] = Field(default_factory=list)
    difficulty_tier: Annotated[int, Field(ge=0, lt=2**31)] | None = None
    root_cause: Text | None = None
    attack_scenario: Text | None = None
    fix: Text | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        texts = (self.vulnerability_type, self.severity, *self.vulnerable_functions)
        if not all(is_storable(text) for text in (*texts, self.root_cause, self.attack_scenario, self.fix) if text):
            raise ValueError("a text that cannot be stored (half a surrogate pair, or NUL)")
        return self

    @property
    def flaw(self) -> str | None:
        """Why this is not enough to ask a judge about the contract, or None; recorded judgements need less."""
        if self.is_vulnerable and not normalised(self.vulnerability_type or ""):
            return "a vulnerable contract needs a vulnerability_type"
        if not self.is_vulnerable and (self.vulnerability_type or self.vulnerable_functions or self.vulnerable_lines):
            return "a safe contract has no vulnerability_type, vulnerable_functions or vulnerable_lines"
        texts = (self.severity, *self.vulnerable_functions, self.root_cause, self.attack_scenario, self.fix)
        return "a text is blank; leave it out" if "" in texts else None


def as_sample(
    dataset: str, sample_id: str, contract: str, truth: GroundTruth, cluster: str, note: str | None
) -> Sample:
    """Build the sample of a contract. Type and severity are normalised, so that slices do not split on spelling."""
    kind = normalised(truth.vulnerability_type or "") or None
    severity = normalised(truth.severity or "") or None
    known = truth.model_copy(update={"vulnerability_type": kind, "severity": severity})
    return Sample(
        SUITE,
        dataset,
        sample_id,
        contract,
        target=canonical_json(known.model_dump()).decode(),
        label="vulnerable" if truth.is_vulnerable else "safe",
        category=kind,
        severity=severity,
        difficulty=None if truth.difficulty_tier is None else str(truth.difficulty_tier),
        cluster=cluster,
        note=note,
    )


def truth_of(sample: Sample) -> GroundTruth:
    """Read the ground truth that a sample was made with."""
    return GroundTruth.model_validate_json(sample.target or "")
