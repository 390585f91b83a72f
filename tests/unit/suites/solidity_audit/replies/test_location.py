"""Replies of auditors: predictions, locations and contradictions."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalake.suites.solidity_audit.replies import (
    MOST_TOLD,
    Claim,
    Judgement,
    Prediction,
    compare,
    contradictions,
    further,
    lines_in,
    names_function,
    read_prediction,
    refusing,
)
from tests.cases import cases_beside
from tests.unit.suites.solidity_audit.support import finding, judgement, target

CASES = cases_beside(__file__, "places.json")

# Places are compared by function names and line numbers, as people write them.


@pytest.mark.parametrize(
    ("location", "lines"),
    [
        ("lines 12-15", {12, 13, 14, 15}),
        ("L40", {40}),
        ("Vault.sol:7", {7}),
        ("#L12-L14", {12, 13, 14}),
        ("line 3 and 9", {3, 9}),
        ("LINE 4", {4}),
        ("lines 3 – 5, 8", {3, 4, 5, 8}),
        ("withdraw(), line 8; deposit(), lines 20 to 21", {8, 20, 21}),
        ("line 5-3", set()),
        ("lines 1-9999", set()),
        ("line 0", set()),
        ("at 12", set()),
        ("pragma 0.8.20", set()),
        ("", set()),
    ],
)
def test_lines_are_read_where_a_word_or_mark_introduces_them(location: str, lines: set[int]) -> None:
    assert lines_in(location) == lines


@pytest.mark.parametrize(("location", "function", "named"), CASES["functions"])
def test_a_function_is_named_by_a_word_of_its_own(location: str, function: str, named: bool) -> None:
    assert names_function(location, ["other", function]) is named


@given(st.text(max_size=200), st.lists(st.integers(1, 50), max_size=5), st.lists(st.integers(1, 50), max_size=5))
def test_any_place_is_compared(location: str, lines: list[int], true: list[int]) -> None:
    _, hit, overlap = compare(location, lines, ["withdraw"], true).values()
    assert (hit is None) == (overlap is None) == (not true)
    assert overlap is None or 0 <= overlap <= 1
    assert hit or not overlap, "what overlaps is near"


# What a direct audit says, read by rule: what cannot be read is null, and never a guess.

FINDING = {"type": "reentrancy", "severity": "high", "location": "withdraw", "lines": [7, 8]}
CLAIM = Claim("reentrancy", "high", "withdraw", (7, 8))
NOTHING = Prediction(None, None, ())


def audit(**fields: Any) -> str:
    return json.dumps({"verdict": "vulnerable", "confidence": 0.9, "findings": [FINDING], **fields})


@pytest.mark.parametrize(
    "text",
    [
        audit(),
        f"My audit:\n```json\n{audit()}\n```\nAsk me for more.",
        f'<think>{{"verdict": "safe"}}</think>{audit()}',
        audit(verdict=" Vulnerable "),
    ],
    ids=["alone", "in a fence", "after thinking", "in other letters"],
)
def test_an_audit_is_found_in_what_is_around_it(text: str) -> None:
    read = read_prediction(text)
    assert (read.said_vulnerable, read.confidence, read.findings) == (True, 0.9, (CLAIM,))


@pytest.mark.parametrize("text", [None, "", "no object", "[]", "{}", '{"verdict": NaN}', '{"note": "safe"}', "{" * 99])
def test_what_is_no_audit_says_nothing(text: str | None) -> None:
    read = read_prediction(text)
    assert (read.said_vulnerable, read.confidence, read.findings) == (None, None, ())


@pytest.mark.parametrize(
    ("text", "mended"),
    [
        (audit()[:-1] + ",}", "a comma too many"),
        (audit().replace("0.9,", "0.9, // sure\n"), "a comment"),
        (audit(confidence="0.9", findings=[{**FINDING, "lines": ["7", "8"]}]), None),
        (json.dumps({"audit": json.loads(audit())}), "an object around it"),
        (audit().replace('"verdict"', '"Verdict"').replace('"findings"', '"FINDINGS"'), "the spelling of names"),
    ],
)
def test_an_audit_whose_form_alone_is_wrong_is_read(text: str, mended: str | None) -> None:
    assert read_prediction(text) == Prediction(True, 0.9, (CLAIM,), (mended,) if mended else ())


def test_a_finding_of_an_audit_that_was_cut_off_does_not_speak_for_the_audit() -> None:
    """Its finding is a whole object with a confidence; the audit's own confidence was never said."""
    cut = json.dumps({"findings": [{**FINDING, "confidence": 0.3}, FINDING], "verdict": "safe"})[:-30]
    assert read_prediction(cut) == NOTHING


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"verdict": "perhaps"}, Prediction(None, 0.9, (CLAIM,))),
        ({"verdict": ["safe"]}, Prediction(None, 0.9, (CLAIM,))),
        ({"verdict": "safe", "confidence": None}, Prediction(False, None, (CLAIM,))),
        ({"confidence": 90}, Prediction(True, None, (CLAIM,))),
        ({"confidence": True}, Prediction(True, None, (CLAIM,))),
        ({"findings": "none"}, Prediction(True, 0.9, ())),
        (
            {"findings": ["reentrancy", {"type": 3, "lines": "7"}]},
            Prediction(True, 0.9, (Claim(None, None, None, ()),) * 2),
        ),
        (
            {"findings": [{"lines": [True, -1, 0, 2.0, 2**40, 5]}]},
            Prediction(True, 0.9, (Claim(None, None, None, (2, 5)),)),
        ),
    ],
)
def test_what_is_not_in_the_form_that_was_asked_for_is_null(fields: dict[str, Any], expected: Prediction) -> None:
    assert read_prediction(audit(**fields)) == expected


# Contradictions of a judgement: each is named in words that say where it is and what would put it right.


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
