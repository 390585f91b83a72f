"""Reading a judgement: what was not asked for, and what was and is missing, is named."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalake.suites.solidity_audit.replies import Asked, read_judgement
from tests.unit.suites.solidity_audit.judgements import GOOD, changed
from tests.unit.suites.solidity_audit.support import finding, judgement, target

WITHOUT_VERDICT = {name: value for name, value in judgement().items() if name != "overall_verdict"}


@pytest.mark.parametrize(
    ("reply", "asked", "named"),
    [
        (judgement(), Asked(True, True), "target_assessment: the field is missing"),
        (judgement([], target()), Asked(False, True), "target_assessment: leave the field out"),
        (
            judgement([finding()]),
            Asked(None, None),
            "one is classified TARGET_MATCH, but there is no target_assessment",
        ),
        (judgement([finding()]), Asked(False, True), "are no classifications where there is no known vulnerability"),
        (WITHOUT_VERDICT, Asked(None, True), "overall_verdict: the field is missing"),
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
        JUDGED[:-1] + ', "Findings": []}',
        JUDGED[:-1] + ', "findings": [],}',
        f"The audit claims {OTHER[:-1]},}}, but I say:\n{JUDGED}",
        f"The audit claims {OTHER}, but I say:\n{JUDGED[:-1]},}}",
        json.dumps([GOOD, json.loads(OTHER)]),
        json.dumps({"quoted": json.loads(OTHER), "mine": GOOD}),
    ],
    ids=[
        *("before", "behind", "twice", "twice in two spellings", "twice and broken"),
        *("broken", "beside broken", "a list", "in one"),
    ],
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


def test_what_is_taken_as_it_comes_may_be_there_or_not() -> None:
    for reply in (judgement(), WITHOUT_VERDICT, judgement([finding()], target())):
        assert read_judgement(json.dumps(reply), Asked(None, None)).judgement is not None


ASKED = Asked(target=True, verdict=True)
PLAIN = json.dumps(GOOD, indent=1)
SCORES = ("root_cause_identification", "attack_vector_validity", "fix_suggestion_validity")


def without(*names: str, of: dict[str, Any]) -> dict[str, Any]:
    """The object without some of its fields."""
    return {name: part for name, part in of.items() if name not in names}


@pytest.mark.parametrize(
    ("text", "mended"),
    [
        (PLAIN, ()),
        (PLAIN.rstrip("}\n") + ",\n}\n}", ("a comma too many",)),
        (PLAIN.replace("true,", "true, // yes, {it is}", 1), ("a comment",)),
        (PLAIN.replace("true,", "true, /* so */", 1), ("a comment",)),
        (PLAIN.replace('"', "'"), ("quotes of names",)),
        (PLAIN.replace("true", "True").replace("null", "None"), ("the syntax of JSON",)),
        (f"```json\n{PLAIN}\n```", ("text around the object",)),
        (json.dumps({"result": {"judgement": GOOD}}), ("an object around it",)),
        (PLAIN.replace("target_assessment", "targetAssessment"), ("the spelling of names",)),
        (PLAIN.replace("TARGET_MATCH", "target match"), ("the spelling of classification",)),
        (PLAIN.replace("exact", "Exact"), ("the spelling of type_match",)),
        (json.dumps(changed("findings", 0, "finding_id", to="1")), ("finding_id as text",)),
        (json.dumps(changed("findings", 0, "finding_id", to=1.0)), ()),
        (json.dumps(changed("findings", 0, "mood", to="good")), ("the further field mood",)),
        (json.dumps({**GOOD, "confidence": 0.8}), ("the further field confidence",)),
        (json.dumps(changed("target_assessment", "found", to="yes")), ("found as text",)),
    ],
)
def test_a_judgement_whose_form_alone_is_wrong_is_read_and_says_what_was_mended(
    text: str, mended: tuple[str, ...]
) -> None:
    plain = read_judgement(PLAIN, ASKED)
    read = read_judgement(text, ASKED)
    assert (read.judgement, read.flaws, read.mended) == (plain.judgement, (), mended)


def test_a_line_break_in_a_string_is_read_as_one() -> None:
    read = read_judgement(json.dumps(changed("findings", 0, "reason", to="a\nb")).replace("\\n", "\n"), ASKED)
    assert read.judgement is not None
    assert read.judgement.findings[0].reason == "a\nb"
    assert read.mended == ("a line break in a string",)


@pytest.mark.parametrize("score", [0.9, "0.9", {"score": "0.9"}, {"score": 0.9, "level": "high"}, {"Score": 0.9}])
def test_a_score_is_read_in_whatever_form_it_is_stated(score: Any) -> None:
    read = read_judgement(json.dumps(changed("target_assessment", SCORES[0], to=score)), ASKED)
    assert read.judgement is not None
    assert read.judgement.target_assessment is not None
    assert getattr(read.judgement.target_assessment, SCORES[0]).score == 0.9
    assert read.mended


def test_where_the_target_was_not_found_what_has_nothing_to_say_may_be_left_out() -> None:
    short = judgement([], without("finding_id", "type_match", *SCORES, of=target(found=False)))
    assert (
        read_judgement(json.dumps(short), ASKED).judgement
        == read_judgement(json.dumps(judgement([], target(found=False) | {"type_match": None})), ASKED).judgement
    )


@pytest.mark.parametrize(
    ("reply", "asked", "mended"),
    [
        (judgement(), Asked(None, False), "overall_verdict, which was not asked for"),
        (judgement([], target(found=False)), Asked(False, True), "target_assessment, which was not asked for"),
    ],
)
def test_what_was_not_asked_for_and_says_nothing_against_it_is_left_out(
    reply: dict[str, Any], asked: Asked, mended: str
) -> None:
    read = read_judgement(json.dumps(reply), asked)
    assert read.judgement is not None
    assert getattr(read.judgement, mended.partition(",")[0]) is None
    assert read.mended == (mended,)


@pytest.mark.parametrize(
    "text",
    [
        PLAIN[:-30],
        PLAIN.rstrip()[:-1],
        PLAIN.replace("\n  }\n ]", "\n  },\n  ...\n ]", 1),
        PLAIN.replace('"findings": [', '"findings": [{"finding_id": 9, "reason": "a 5" pipe"},', 1),
    ],
    ids=["cut off", "a brace too few", "something left out", "a quote too many"],
)
def test_where_meaning_may_be_missing_the_judge_is_asked_again(text: str) -> None:
    reading = read_judgement(text, ASKED)
    assert reading.judgement is None
    assert reading.flaws


@pytest.mark.parametrize(
    ("reply", "named"),
    [
        (changed("findings", 0, "classification", to="TOTALLY_RIGHT"), "TOTALLY_RIGHT"),
        (changed("target_assessment", "type_match", to="kind of"), "kind of"),
        (changed("target_assessment", "found", to="perhaps"), "target_assessment.found"),
        (changed("target_assessment", "root_cause_identification", to="high"), "root_cause_identification"),
        (changed("target_assessment", "root_cause_identification", to={"reason": "x"}), "identification.score"),
        (changed("target_assessment", "root_cause_identification", to={"score": "NaN"}), "identification.score"),
        ({name: part for name, part in GOOD.items() if name != "findings"}, "findings"),
        ({**GOOD, "error": "I could not judge it"}, "the judge failed: I could not judge it"),
        ({**GOOD, "verdict": "safe"}, "as an audit has"),
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
