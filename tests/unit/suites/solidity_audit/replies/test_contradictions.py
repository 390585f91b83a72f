"""Contradictions of a judgement: each is named in words that say where it is and what would put it right."""

from typing import Any

import pytest

from evalake.suites.solidity_audit.replies import MOST_TOLD, Judgement, contradictions, further, refusing
from tests.unit.suites.solidity_audit.support import finding, judgement, target


def told(*findings: dict[str, Any], assessed: dict[str, Any] | None = None) -> list[str]:
    return contradictions(Judgement.model_validate(judgement(findings, assessed)))


@pytest.mark.parametrize(
    ("findings", "assessed", "words"),
    [
        ([finding(1), finding(1, "BONUS_VALID")], target(), "several findings have the finding_id 1"),
        ([finding(1)], target(number=7), "finding_id is 7, but no finding has that id"),
        ([finding(1)], target(False), "classified TARGET_MATCH, but target_assessment.found is false"),
        ([finding(1)], target(share=1.5), "root_cause_identification is 1.5, which is not between 0 and 1"),
        ([], {**target(False), "finding_id": 3}, "found is false, but target_assessment.finding_id is 3"),
        ([finding(1)], target(number=None), "found is true, but target_assessment.finding_id is null"),
        ([finding(1, "HALLUCINATED")], target(), "but finding 1 is classified HALLUCINATED"),
        ([finding(1), finding(2, "PARTIAL_MATCH")], target(number=2), "but finding 2 is classified PARTIAL_MATCH"),
        ([finding(1, "BONUS_VALID", matches_target=True)], target(False), "but its matches_target is true"),
        ([finding(1, matches_target=False)], target(), "but its matches_target is false"),
        ([finding(1, "HALLUCINATED", is_valid_concern=True)], target(False), "but its is_valid_concern is true"),
        ([finding(1, is_valid_concern=False)], target(), "but its is_valid_concern is false"),
    ],
)
def test_each_is_named(findings: list[dict[str, Any]], assessed: dict[str, Any], words: str) -> None:
    assert any(words in each for each in told(*findings, assessed=assessed))


def test_a_judgement_that_goes_together_has_none() -> None:
    good = [finding(1, matches_target=True, is_valid_concern=True), finding(2, "PARTIAL_MATCH", matches_target=True)]
    assert told(*good, assessed=target()) == []
    assert told(finding(1, "PARTIAL_MATCH"), assessed=target()) == []  # where no finding is the target itself
    assert told() == []


def test_what_is_told_further_is_bounded() -> None:
    many = [finding(n, "HALLUCINATED", is_valid_concern=True) for n in range(1, 100)]
    read = Judgement.model_validate(judgement(many, target(False)))
    assert len(further(read)) == MOST_TOLD
    assert refusing(read) == []
