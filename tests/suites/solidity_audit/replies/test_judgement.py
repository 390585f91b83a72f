"""Reading a judgement: what was not asked for, and what was and is missing, is named."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.solidity_audit.replies.judgement import Asked, read_judgement
from tests.suites.solidity_audit.judgements import GOOD, changed
from tests.suites.solidity_audit.support import finding, judgement, target

WITHOUT_VERDICT = {name: value for name, value in judgement().items() if name != "overall_verdict"}


@pytest.mark.parametrize(
    ("reply", "asked", "named"),
    [
        (judgement(), Asked(True, True), "target_assessment: the field is missing"),
        (judgement([], target(False)), Asked(False, True), "target_assessment: leave the field out"),
        (
            judgement([finding()]),
            Asked(None, None),
            "one is classified TARGET_MATCH, but there is no target_assessment",
        ),
        (judgement([finding()]), Asked(False, True), "are no classifications where there is no known vulnerability"),
        (WITHOUT_VERDICT, Asked(None, True), "overall_verdict: the field is missing"),
        (judgement(), Asked(None, False), "overall_verdict: leave the field out"),
    ],
)
def test_what_does_not_answer_the_question_is_a_flaw(reply: dict[str, Any], asked: Asked, named: str) -> None:
    reading = read_judgement(json.dumps(reply), asked)
    assert reading.judgement is None
    assert any(named in flaw for flaw in reading.flaws)


JUDGED = json.dumps(GOOD)
OTHER = json.dumps({**GOOD, "target_assessment": target(False), "findings": []})


@pytest.mark.parametrize(
    "text",
    [
        f"The audit claims {OTHER}, but I say:\n{JUDGED}",
        f"{JUDGED}\n{OTHER}",
        JUDGED[:-1] + ', "findings": []}',
        json.dumps({"quoted": json.loads(OTHER), "mine": GOOD}),
    ],
    ids=["quoted before", "quoted behind", "a field twice", "in one object"],
)
def test_two_judgements_that_differ_are_none(text: str) -> None:
    reading = read_judgement(text, Asked(target=True, verdict=True))
    assert reading.judgement is None
    assert "2 judgements that differ" in reading.flaws[0]
    assert reading.is_ambiguous


@pytest.mark.parametrize(
    "text",
    [
        JUDGED[:-1] + f', "findings": {json.dumps(GOOD["findings"])}}}',
        JUDGED[:-1] + f', "findings": [], "findings": {json.dumps(GOOD["findings"])}}}',
        JUDGED.replace('"found":', '"found": false, "found": false, "found":', 1),
    ],
    ids=["alike", "of three the second is another", "within"],
)
def test_a_field_that_stands_twice_leaves_no_judgement_whatever_its_values(text: str) -> None:
    reading = read_judgement(text, Asked(target=True, verdict=True))
    assert (reading.judgement, reading.is_ambiguous) == (None, True)
    assert "each field once" in reading.flaws[0]


@pytest.mark.parametrize(
    "text",
    [
        f"{JUDGED}\nTo repeat it:\n{json.dumps(GOOD, indent=1)}",
        json.dumps({"judgement": GOOD}),
        f'The audit says {{"verdict": "safe", "findings": []}}. {JUDGED}',
        f"<think>{OTHER}</think>{JUDGED}",
    ],
    ids=["repeated", "in a wrapper", "beside the audit's own words", "behind thinking"],
)
def test_one_judgement_is_read_whatever_stands_beside_it(text: str) -> None:
    assert read_judgement(text, Asked(target=True, verdict=True)).judgement is not None


def test_a_recorded_judgement_that_says_it_failed_is_none() -> None:
    recorded = Asked(target=True, verdict=True, recorded=True)
    reading = read_judgement(json.dumps({**GOOD, "error": "Failed to parse"}), recorded)
    assert (reading.judgement, reading.flaws) == (None, ("the judge failed: Failed to parse",))


def test_what_is_taken_as_it_comes_may_be_there_or_not() -> None:
    for reply in (judgement(), WITHOUT_VERDICT, judgement([finding()], target())):
        assert read_judgement(json.dumps(reply), Asked(None, None)).judgement is not None


ASKED = Asked(target=True, verdict=True)


@pytest.mark.parametrize(
    ("reply", "named"),
    [
        (changed("findings", 0, "classification", to="TOTALLY_RIGHT"), "TOTALLY_RIGHT"),
        (changed("target_assessment", "type_match", to="kind of"), "kind of"),
        (changed("findings", 0, "mood", to="good"), "findings.0.mood"),
        (changed("target_assessment", "found", to="yes"), "target_assessment.found"),
        (changed("findings", 0, "finding_id", to=True), "findings.0.finding_id"),
        (changed("overall_verdict", to=None), "overall_verdict"),
        (changed("target_assessment", to=None), "target_assessment"),
        ({"findings": "none"}, "findings"),
    ],
)
def test_what_is_unknown_missing_or_of_another_type_is_named(reply: Any, named: str) -> None:
    reading = read_judgement(json.dumps(reply), ASKED)
    assert reading.judgement is None
    assert named in " ".join(reading.flaws)


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "   \n",
        "no JSON at all",
        "[1, 2]",
        "{" * 100_000,
        '{"findings":' * 50_000,
        '{"findings": [' + "[" * 100_000,
        '{"findings": [{"finding_id": 1' + "0" * 50_000 + "}]}",
        '{"findings": NaN}',
        json.dumps(changed("overall_verdict", "confidence_expressed", to=1e300)),
        "<think>" * 50_000 + json.dumps(GOOD),
        "\ud800{}",
    ],
)
def test_no_reply_makes_reading_fail(text: str | None) -> None:
    reading = read_judgement(text, ASKED)
    assert reading.judgement is None
    assert reading.flaws


def test_a_judgement_of_a_hundred_thousand_findings_is_too_long_and_says_so() -> None:
    reading = read_judgement(json.dumps({"findings": [finding()] * 100_000}), ASKED)
    assert reading.judgement is None
    assert "only its first 400,000 characters are read" in " ".join(reading.flaws)


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.integers() | st.text(), st.lists, max_leaves=8))
def test_no_value_in_place_of_a_field_makes_reading_fail(value: Any) -> None:
    for path in (("findings",), ("findings", 0, "finding_id"), ("target_assessment",), ("overall_verdict",)):
        reading = read_judgement(json.dumps(changed(*path, to=value)), ASKED)
        assert (reading.judgement is None) == bool(reading.flaws)
