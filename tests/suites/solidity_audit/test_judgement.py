"""A judge's reply is read strictly, in bounded time; what contradicts itself is told, and repaired at most once."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.audit import audit
from providers.request import Failure, Reply
from suites.base import Exchange
from suites.solidity_audit.contract import FINDINGS, RESULTS
from suites.solidity_audit.conversation import converse
from suites.solidity_audit.replies.judgement import Asked, read_judgement
from suites.solidity_audit.score import score
from tests.suites.solidity_audit.support import SAFE, conversation, finding, judgement, line, rows_of, sample, target

ASKED = Asked(target=True, verdict=True)
GOOD = judgement([finding()], target())


def changed(*path: Any, to: Any) -> dict[str, Any]:
    """The good judgement with one value replaced."""
    copy: dict[str, Any] = json.loads(json.dumps(GOOD))
    place: Any = copy
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = to
    return copy


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(GOOD),
        f"Here it is:\n```json\n{json.dumps(GOOD, indent=2)}\n```\nDone.",
        f'<think>{{"findings": []}} is one way</think>{json.dumps(GOOD)}',
        f"a chat template's thinking</think>{json.dumps(GOOD)}",
        json.dumps({"note": "first"}) + json.dumps(GOOD),
    ],
)
def test_a_judgement_is_found_wherever_the_reply_puts_it(text: str) -> None:
    reading = read_judgement(text, ASKED)
    assert reading.flaws == ()
    assert reading.judgement is not None
    assert reading.judgement.model_dump(exclude_none=True)["findings"] == [finding()]


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


CONTRADICTIONS = {
    "target_match_means_found": judgement([finding()], target(found=False)),
    "found_finding_exists": judgement([finding(1)], target(number=7)),
    "finding_ids_differ": judgement([finding(1), finding(1, "BONUS_VALID")], target()),
    "rcir_is_share": judgement([finding()], target(root_cause_identification={"score": 1.5})),
    "ava_is_share": judgement([finding()], target(attack_vector_validity={"score": -0.1})),
    "fsv_is_share": judgement([], target(found=False, fix_suggestion_validity={"score": 2})),
    "confidence_is_share": judgement([finding()], target(), confidence=95.0),
}


@pytest.mark.parametrize("rule", CONTRADICTIONS)
def test_each_contradiction_breaks_the_rule_that_names_it(rule: str) -> None:
    results, findings = rows_of([line(judged=CONTRADICTIONS[rule])])
    audited = audit(results, RESULTS)
    assert audited.good.is_empty()
    assert rule in audited.bad["broken"][0]
    assert set(audited.bad["broken"][0]) <= {rule, "calibration_error_is_share"}
    assert findings.is_empty(), "the findings of a refused judgement must not land either"


def test_a_good_judgement_keeps_every_rule() -> None:
    results, findings = rows_of([line(judged=GOOD)])
    assert audit(results, RESULTS).bad.is_empty()
    assert audit(findings, FINDINGS).good.height == 1


@pytest.mark.parametrize("rule", CONTRADICTIONS)
def test_a_judge_is_shown_its_contradiction_once(rule: str) -> None:
    item, answered = conversation([CONTRADICTIONS[rule]])
    repair = converse(item, answered, {})
    assert repair is not None
    assert repair.model == "a/judge"
    assert repair.messages[-2]["role"] == "assistant"
    assert "cannot be used" in repair.messages[-1]["content"]
    answered.append(Exchange("f" * 64, Reply(json.dumps(GOOD))))
    assert converse(item, answered, {}) is None
    (row,) = score(item, answered, {})[RESULTS.table]
    assert row["target_found"] is True
    assert row["repaired"] is True
    assert row["judge_hash"] == answered[1].prompt_hash


def test_a_judge_that_cannot_repair_is_a_judge_error_and_never_not_found() -> None:
    item, answered = conversation(["I think it is fine.", "It really is."])
    assert converse(item, answered, {}) is None
    rows = score(item, answered, {})
    (row,) = rows[RESULTS.table]
    assert "unreadable judgement" in row["judge_error"]
    assert row["target_found"] is None
    assert row["detection_correct"] is None
    assert row["total_findings"] is None
    assert FINDINGS.table not in rows


def test_a_good_judgement_is_not_asked_again() -> None:
    item, answered = conversation([GOOD])
    assert converse(item, answered, {}) is None


@pytest.mark.parametrize(("kind", "lands"), [("timeout", True), ("content_policy", True), ("authentication", False)])
def test_a_failed_judge_call_lands_only_where_it_says_something(kind: Any, lands: bool) -> None:
    item, answered = conversation([GOOD])
    answered[1] = Exchange(answered[1].prompt_hash, Failure(kind, "no", 1))
    assert converse(item, answered, {}) is None
    rows = score(item, answered, {})
    assert bool(rows) is lands
    if lands:
        assert rows[RESULTS.table][0]["judge_error"] == kind
        assert rows[RESULTS.table][0]["judgement_hash"] is None


def test_a_failed_subject_is_not_judged() -> None:
    item, answered = conversation([])
    failed = [Exchange(answered[0].prompt_hash, Failure("timeout", "late", 3))]
    assert converse(item, failed, {}) is None
    (row,) = score(item, failed, {})[RESULTS.table]
    assert (row["subject_error"], row["detection_correct"]) == ("timeout", False)


def test_of_a_safe_contract_no_target_may_be_claimed() -> None:
    item, answered = conversation([judgement([finding()])], sample=sample(SAFE))
    repair = converse(item, answered, {})
    assert repair is not None
    assert "TARGET_MATCH" in repair.messages[-1]["content"]


def test_the_verdict_of_a_structured_audit_is_read_and_not_asked_for() -> None:
    audit_text = '{"verdict": "Vulnerable", "confidence": 0.7, "findings": [{"location": "withdraw()", "lines": [8]}]}'
    judged = {key: value for key, value in GOOD.items() if key != "overall_verdict"}
    item, answered = conversation([judged], audit_text, prompt_type="direct")
    assert converse(item, answered, {}) is None
    (row,) = score(item, answered, {})[RESULTS.table]
    assert (row["said_vulnerable"], row["confidence"]) == (True, 0.7)
    assert row["location_function_hit"] is True
    assert row["location_line_hit"] is True
    assert row["location_line_iou"] == 0.5
    item, answered = conversation([GOOD], audit_text, prompt_type="direct")
    assert converse(item, answered, {}) is not None, "a verdict that was not asked for is refused"


def test_the_judges_reasons_are_kept_beside_what_they_are_for() -> None:
    said = {name: f"why {name}" for name in ("rcir", "ava", "fsv")}
    assessed = target(
        root_cause_identification={"reason": said["rcir"], "score": 0.5},
        attack_vector_validity={"reason": said["ava"], "score": 0.25},
        fix_suggestion_validity={"reason": " ", "score": 0},
        type_match_reason="the same name",
    )
    judged = {**judgement([finding(reason="same flaw, same place")], assessed), "notes": "a\x00b"}
    results, findings = rows_of([line(judged=judged)])
    row = results.row(0, named=True)
    assert (row["rcir_reason"], row["ava_reason"], row["fsv_reason"]) == (said["rcir"], said["ava"], None)
    assert (row["type_match_reason"], row["judge_notes"]) == ("the same name", "a?b")
    assert findings["reason"].to_list() == ["same flaw, same place"]
    assert audit(results, RESULTS).bad.is_empty()
