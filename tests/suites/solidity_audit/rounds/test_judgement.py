"""A recorded judgement in the suite's own words: what is known is kept, what is not as it must be is handed on."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.base.json_in_text import number_of
from suites.solidity_audit.replies.judgement import Asked, read_judgement
from suites.solidity_audit.rounds.judgement import in_our_words, truth_of
from suites.solidity_audit.taxonomy import SCORES
from tests.suites.solidity_audit.rounds.material import judgement


def test_what_the_suite_does_not_know_is_left_out() -> None:
    read = in_our_words(judgement())
    assert read.keys() == {"findings", "overall_verdict", "target_assessment", "summary", "notes"}
    assert "surprise" not in read["findings"][0]
    assert read["findings"][0]["reason"] == "As the code says."
    assert read["target_assessment"]["root_cause_identification"] == {
        "score": 0.75,
        "reason": "It names the statement.",
    }


@pytest.mark.parametrize(
    ("stated", "read"),
    [
        ({"id": "3", "class": "target match"}, {"finding_id": 3, "classification": "TARGET_MATCH"}),
        ({"finding_number": 2, "classification": "bonus-valid"}, {"finding_id": 2, "classification": "BONUS_VALID"}),
        ({"finding_id": None, "id": 4}, {"finding_id": 4}),
        ({"type": "dos", "severity": "low"}, {"vulnerability_type_claimed": "dos", "severity_claimed": "low"}),
        ({"location": "f()", "explanation": "x"}, {"location_claimed": "f()", "description": "x"}),
        ({"matches_target": "yes", "is_valid_concern": "No"}, {"matches_target": True, "is_valid_concern": False}),
        ("no finding", "no finding"),
    ],
)
def test_a_finding_is_told_in_our_field_names(stated: Any, read: Any) -> None:
    assert in_our_words({"findings": [stated]}) == {"findings": [read]}


@pytest.mark.parametrize(
    ("score", "read"),
    [
        ("0.5", {"score": 0.5}),
        (1, {"score": 1}),
        ({"score": "0.25", "reasoning": "why"}, {"score": 0.25, "reason": "why"}),
        ({"score": None, "reasoning": "not told"}, None),
        (None, None),
        (True, True),
        ("high", "high"),
    ],
)
def test_a_score_may_be_a_number_a_text_or_an_object(score: Any, read: Any) -> None:
    target = in_our_words({"findings": [], "target_assessment": {"root_cause_identification": score}})
    assert target["target_assessment"]["root_cause_identification"] == read


def test_of_verdict_and_target_every_field_is_there_null_where_it_is_not_said() -> None:
    told = {"findings": [], "overall_verdict": {"is_vulnerable": "true"}, "target_assessment": {"target_found": "no"}}
    read = in_our_words(told)
    assert read["overall_verdict"] == {"said_vulnerable": True, "confidence_expressed": None}
    unsaid = dict.fromkeys(("finding_id", "type_match", *SCORES.values()))
    assert read["target_assessment"] == {"found": False, **unsaid}
    reading = read_judgement(
        '{"findings": [], "target_assessment": {"found": false}}', Asked(None, None, recorded=True)
    )
    assert reading.flaws == ()


def test_the_word_for_a_type_match_is_spelled_our_way() -> None:
    told = {"findings": [], "target_assessment": {"type_match": "Not-Mentioned"}}
    assert in_our_words(told)["target_assessment"]["type_match"] == "not_mentioned"


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ("3", 3),
        ("-1", -1),
        ("0.5", 0.5),
        ("1e999", "1e999"),
        ("nan", "nan"),
        ("1_0", "1_0"),
        (2.0, 2),
        ("high", "high"),
        (None, None),
        ([1], [1]),
    ],
)
def test_a_text_that_is_a_number_is_one(value: Any, number: Any) -> None:
    assert number_of(value) == number


@pytest.mark.parametrize(
    ("value", "truth"), [(" TRUE ", True), ("yes", True), ("No", False), ("1", "1"), (1, 1), (None, None)]
)
def test_a_text_that_states_a_truth_is_one(value: Any, truth: Any) -> None:
    assert truth_of(value) is truth if isinstance(truth, bool) else truth_of(value) == truth


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=9,
)


@given(st.dictionaries(st.sampled_from(["findings", "overall_verdict", "target_assessment", "summary"]), anything))
def test_any_object_is_put_into_our_words(value: dict[str, Any]) -> None:
    assert in_our_words(value)["findings"] is not None or value.get("findings") is None
