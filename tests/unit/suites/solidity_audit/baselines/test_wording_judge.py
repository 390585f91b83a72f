"""The second embedded judge goes by what is said, and no audit wears it out."""

import pytest

from evalake.suites.solidity_audit.baselines.wording_judge import answer as judge_by_words
from tests.unit.suites.solidity_audit.baselines.material import claim, judged


@pytest.mark.parametrize(
    ("text", "said", "confidence", "kind"),
    [
        ("Probably vulnerable.\n1. The balance is written only after ether was sent.", True, None, "TARGET_MATCH"),
        ("It is exploitable (confidence 0.9).\n1. Somebody drains the owner.", True, 0.9, "DESIGN_CHOICE"),
        ("1. Reentrancy in take.", True, None, "SECURITY_THEATER"),
        ("1. nothere() loses money.", True, None, "HALLUCINATED"),
        ("1. Add an event.", True, None, "INFORMATIONAL"),
        ("The contract is fine, no issues; confidence: 1.0.", False, 1.0, None),
        ("Hm. My confidence is 95.", None, None, None),
        ("", None, None, None),
    ],
)
def test_the_second_judge_goes_by_what_is_said_not_by_what_is_named(
    text: str, said: bool | None, confidence: float | None, kind: str | None
) -> None:
    told = judged(text, judge=judge_by_words)
    assert told["overall_verdict"] == {"said_vulnerable": said, "confidence_expressed": confidence}
    assert [finding["classification"] for finding in told["findings"]] == ([kind] if kind else [])
    assert told["target_assessment"]["found"] is (kind == "TARGET_MATCH")


def test_the_second_judge_finds_a_target_under_any_name_and_without_its_place() -> None:
    told = judged(claim(type="gas", explanation="the balance is written after ether was sent"), judge=judge_by_words)
    assert told["target_assessment"]["found"] is True
    assert told["target_assessment"]["root_cause_identification"]["score"] == 1.0
    told = judged(claim(type="reentrancy", location="take"), judge=judge_by_words)
    assert told["target_assessment"]["found"] is False


@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "text", ["1. " + "aB" * 90_000, "a " * 90_000, "1. x(\n" * 30_000, "is " * 60_000, "A" * 190_000]
)
def test_no_audit_wears_the_second_judge_out(text: str) -> None:
    assert len(judged(text, judge=judge_by_words)["findings"]) <= 100
