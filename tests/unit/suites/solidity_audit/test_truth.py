"""Ground truth is kept as a sample's target, types and severities in one spelling."""

from typing import Any

import pytest
from pydantic import ValidationError

from evalake.suites.solidity_audit.truth import GroundTruth, as_sample, truth_of
from tests.unit.suites.solidity_audit.support import TRUTH, sample


def test_a_sample_is_made_of_what_is_known_and_gives_it_back() -> None:
    made = as_sample("d", "box", "contract Box {}", TRUTH, "pair", "a note")
    assert (made.label, made.category, made.severity, made.difficulty) == ("vulnerable", "reentrancy", "high", "1")
    assert (made.cluster, made.note, made.input) == ("pair", "a note", "contract Box {}")
    assert truth_of(made) == TRUTH


def test_of_a_safe_contract_nothing_is_known_but_that() -> None:
    made = as_sample("d", "box", "contract Box {}", GroundTruth(is_vulnerable=False), "pair", None)
    assert (made.label, made.category, made.severity, made.difficulty) == ("safe", None, None, None)
    assert truth_of(made) == GroundTruth(is_vulnerable=False)


def test_another_truth_makes_another_sample() -> None:
    one, other = (sample(TRUTH.model_copy(update={"fix": fix})) for fix in ("Write it first.", "Take a lock."))
    assert one.sample_hash != other.sample_hash


@pytest.mark.parametrize(
    ("known", "flaw"),
    [
        ({"is_vulnerable": True, "vulnerability_type": "reentrancy"}, None),
        ({"is_vulnerable": False}, None),
        ({"is_vulnerable": False, "severity": "high"}, None),
        ({"is_vulnerable": True, "vulnerability_type": " - "}, "a vulnerable contract needs a vulnerability_type"),
        ({"is_vulnerable": False, "vulnerable_lines": [3]}, "a safe contract has no vulnerability_type"),
        ({"is_vulnerable": True, "vulnerability_type": "dos", "vulnerable_functions": [""]}, "a text is blank"),
    ],
)
def test_what_keeps_a_judge_from_being_asked_is_said(known: dict[str, Any], flaw: str | None) -> None:
    said = GroundTruth.model_validate(known).flaw
    assert said is None if flaw is None else said is not None and said.startswith(flaw)


@pytest.mark.parametrize(
    ("known", "named"),
    [
        ({"is_vulnerable": True, "fix": "half a pair \ud800"}, "fix"),
        ({"is_vulnerable": True, "vulnerable_functions": ["a\x00"]}, "cannot be stored"),
        ({"is_vulnerable": True, "vulnerable_lines": [0]}, "vulnerable_lines"),
        ({"is_vulnerable": True, "difficulty_tier": -1}, "difficulty_tier"),
        ({"is_vulnerable": 1}, "is_vulnerable"),
        ({"vulnerability_type": "dos"}, "is_vulnerable"),
        ({"is_vulnerable": True, "mood": "good"}, "mood"),
    ],
)
def test_a_truth_of_another_form_is_refused(known: dict[str, Any], named: str) -> None:
    with pytest.raises(ValidationError, match=named):
        GroundTruth.model_validate(known)
