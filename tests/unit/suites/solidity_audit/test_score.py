"""An audit and its judgement become rows: errors stand for themselves, and never for "not found"."""

from typing import Any

import polars as pl
import pytest

from evalake.contracts.audit import audit
from evalake.models.request import Failure, Reply
from evalake.sdk import Exchange, Item
from evalake.suites.solidity_audit.contract import FINDINGS, RESULTS
from evalake.suites.solidity_audit.conversation import converse
from evalake.suites.solidity_audit.score import score
from evalake.suites.solidity_audit.truth import DEFAULTS
from tests.unit.suites.solidity_audit import support
from tests.unit.suites.solidity_audit.judgements import GOOD


def test_a_judge_that_cannot_repair_is_a_judge_error_and_never_not_found() -> None:
    item, answered = support.conversation(["I think it is fine.", "It really is."])
    assert converse(item, answered, {}) is None
    rows = score(item, answered, {})
    (row,) = rows[RESULTS.table]
    assert "unreadable judgement" in row["judge_error"]
    assert row["target_found"] is None
    assert row["detection_correct"] is None
    assert row["total_findings"] is None
    assert FINDINGS.table not in rows


@pytest.mark.parametrize(("kind", "lands"), [("timeout", True), ("content_policy", True), ("authentication", False)])
def test_a_failed_judge_call_lands_only_where_it_says_something(kind: Any, lands: bool) -> None:
    item, answered = support.conversation([GOOD])
    answered[1] = Exchange(answered[1].prompt_hash, Failure(kind, "no", 1))
    assert converse(item, answered, {}) is None
    rows = score(item, answered, {})
    assert bool(rows) is lands
    if lands:
        assert rows[RESULTS.table][0]["judge_error"] == kind
        assert rows[RESULTS.table][0]["judgement_hash"] is None


def test_a_failed_subject_is_not_judged() -> None:
    item, answered = support.conversation([])
    failed = [Exchange(answered[0].prompt_hash, Failure("timeout", "late", 3))]
    assert converse(item, failed, {}) is None
    (row,) = score(item, failed, {})[RESULTS.table]
    assert (row["subject_error"], row["detection_correct"]) == ("timeout", False)


def test_the_verdict_of_a_structured_audit_is_read_and_not_asked_for() -> None:
    audit_text = '{"verdict": "Vulnerable", "confidence": 0.7, "findings": [{"location": "withdraw()", "lines": [8]}]}'
    judged = {key: value for key, value in GOOD.items() if key != "overall_verdict"}
    item, answered = support.conversation([judged], audit_text, prompt_type="direct")
    assert converse(item, answered, {}) is None
    (row,) = score(item, answered, {})[RESULTS.table]
    assert (row["said_vulnerable"], row["confidence"]) == (True, 0.7)
    assert row["location_function_hit"] is True
    assert row["location_line_hit"] is True
    assert row["location_line_iou"] == 0.5
    item, answered = support.conversation([GOOD], audit_text, prompt_type="direct")
    assert converse(item, answered, {}) is None
    (row,) = score(item, answered, {})[RESULTS.table]
    assert (row["confidence"], row["mended"]) == (0.7, "judgement: overall_verdict, which was not asked for")


def test_the_judges_reasons_are_kept_beside_what_they_are_for() -> None:
    said = {name: f"why {name}" for name in ("rcir", "ava", "fsv")}
    assessed = support.target(
        root_cause_identification={"reason": said["rcir"], "score": 0.5},
        attack_vector_validity={"reason": said["ava"], "score": 0.25},
        fix_suggestion_validity={"reason": " ", "score": 0},
        type_match_reason="the same name",
    )
    judged = {**support.judgement([support.finding(reason="same flaw, same place")], assessed), "notes": "a\x00b"}
    results, findings = support.rows_of([support.line(judged=judged)])
    row = results.row(0, named=True)
    assert (row["rcir_reason"], row["ava_reason"], row["fsv_reason"]) == (said["rcir"], said["ava"], None)
    assert (row["type_match_reason"], row["judge_notes"]) == ("the same name", "a?b")
    assert findings["reason"].to_list() == ["same flaw, same place"]
    assert audit(results, RESULTS).bad.is_empty()


@pytest.mark.parametrize(
    ("outcome", "error", "kind"),
    [
        (Failure("timeout", "too late", 1), "timeout", None),
        (Failure("content_policy", "no", 1), "content_policy", None),
        (Reply(None, finish_reason="content_filter"), "content_policy", None),
        (Reply("  "), "timeout", "nothing"),
        (Reply(None, reasoning="hm"), "timeout", "reasoning_only"),
    ],
)
def test_an_audit_that_a_model_did_not_give_is_wrong_and_found_nothing(
    outcome: Any, error: str, kind: str | None
) -> None:
    item = Item(support.sample(), "subject", "judge", "naturalistic")
    (row,) = score(item, [Exchange("0" * 64, outcome)], DEFAULTS)[RESULTS.table]
    assert (row["subject_error"], row["judge_error"], row["target_found"]) == (error, None, False)
    assert row["empty_kind"] == kind
    frame = pl.concat(
        [support.frame_of([support.line(0, judged=support.found())]), support.landed([row])], how="diagonal"
    )
    frame = frame.with_columns(pl.col("bonus_confirmed", "bonus_rejected").fill_null(0), model=pl.lit("m"))
    values = support.values_of(frame)
    assert values["subject_error_rate"]["value"] == values["accuracy"]["value"] == 0.5
    assert values["target_detection_rate"]["value"] == 0.5
    assert (values["judge_error_rate"]["n"], values["total_findings"]["value"]) == (1, 1)
    assert audit(support.landed([row]), RESULTS).bad.is_empty()


def test_a_failure_that_says_nothing_about_the_model_is_no_row() -> None:
    item = Item(support.sample(), "subject", "judge", "naturalistic")
    assert score(item, [Exchange("0" * 64, Failure("connection", "gone", 1))], DEFAULTS) == {}
