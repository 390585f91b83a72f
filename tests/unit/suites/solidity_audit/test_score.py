"""Scores of audits, options of their metrics, and the judge's calibration."""

import json
import re
from collections import Counter
from copy import deepcopy
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evalake.contracts.audit import audit
from evalake.core.configuration import Configuration
from evalake.core.errors import ConfigurationError
from evalake.metrics.agreement import agreement_table
from evalake.models.request import Failure, Reply
from evalake.sdk import Exchange, Item
from evalake.storage.lake import Lake
from evalake.suites.solidity_audit.calibration import DECISIONS, compare, contract_of, items, read_audits
from evalake.suites.solidity_audit.contract import FINDINGS, RESULTS
from evalake.suites.solidity_audit.metrics import metrics
from evalake.suites.solidity_audit.prompts import converse
from evalake.suites.solidity_audit.replies import Judgement
from evalake.suites.solidity_audit.score import score
from evalake.suites.solidity_audit.truth import (
    CLASSIFICATIONS,
    COMPONENTS,
    DEFAULTS,
    FEWEST_SETS,
    aggregation,
    calibration_unstated,
    sui_weight_sets,
    sui_weights,
)
from evalake.tasks.calibrate import accuracy_known, calibrate, calibration_notes
from evalake.tasks.runtime.context import RunContext
from tests.unit.suites.solidity_audit import support
from tests.unit.suites.solidity_audit.judgements import GOOD

# An audit and its judgement become rows: errors stand for themselves, and never for "not found".


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


# The suite's options: weights and ways of aggregation that cannot be are refused in a sentence.


def test_an_aggregation_that_there_is_not_is_refused_before_a_run() -> None:
    with pytest.raises(ConfigurationError, match="majority, strict, dawid_skene; it is 'mean'"):
        metrics({**DEFAULTS, "aggregation": "mean"})


@pytest.mark.parametrize(
    "broken",
    [
        {"sui_weights": {"f2": 1.0}},
        {"sui_weights": dict.fromkeys(COMPONENTS, 0.0)},
        {"sui_weights": dict.fromkeys(COMPONENTS, -1.0)},
        {"sui_weights": None},
        {"sui_weight_sets": {name: dict.fromkeys(COMPONENTS, 1.0) for name in "abcd"}},
        {"sui_weight_sets": {name: {"f2": 1.0} for name in "abcde"}},
        {"panel": ["alone"]},
        {"panel": "a,b"},
        {"sui_calibration_unstated": 2},
    ],
)
def test_weights_that_cannot_be_are_refused(broken: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="solidity_audit"):
        metrics({**DEFAULTS, **broken})


def test_the_defaults_are_weights_and_sets_of_them() -> None:
    weights = sui_weights(DEFAULTS)
    assert tuple(weights) == COMPONENTS
    assert sum(weights.values()) == pytest.approx(1)
    sets = sui_weight_sets(DEFAULTS)
    assert len(sets) >= FEWEST_SETS
    assert all(sum(each.values()) == pytest.approx(1) for each in sets.values())
    assert (calibration_unstated(DEFAULTS), aggregation(DEFAULTS)) == (0.5, "majority")


def test_weights_are_numbers_by_component_in_one_order() -> None:
    given = dict.fromkeys(reversed(COMPONENTS), 2)
    assert list(sui_weights({**DEFAULTS, "sui_weights": given}).items()) == [(name, 2.0) for name in COMPONENTS]


@pytest.mark.parametrize(("given", "unstated"), [("left_out", None), (0, 0.0), (1, 1.0), (0.25, 0.25)])
def test_what_silence_counts_is_a_share_or_left_out(given: object, unstated: float | None) -> None:
    assert calibration_unstated({**DEFAULTS, "sui_calibration_unstated": given}) == unstated


@pytest.mark.parametrize("given", [True, -0.1, 1.1, float("nan"), "none", None])
def test_what_silence_cannot_count_is_refused_with_what_it_may(given: object) -> None:
    with pytest.raises(ConfigurationError, match='must be 0 to 1, or "left_out"'):
        calibration_unstated({**DEFAULTS, "sui_calibration_unstated": given})


@pytest.mark.parametrize("weight", [True, float("nan"), float("inf"), None, 1e6])
def test_a_weight_that_is_no_number_of_reason_is_refused(weight: object) -> None:
    with pytest.raises(ConfigurationError, match=r"solidity_audit\.sui_weights must be weights of 0 or more"):
        sui_weights({**DEFAULTS, "sui_weights": dict.fromkeys(COMPONENTS, 1.0) | {"f2": weight}})


# The audits with known judgements are of pairs that ship, and each judgement is one that a judge could give.

AUDITS: list[dict[str, Any]] = read_audits()


def test_there_are_enough_audits_of_every_kind() -> None:
    assert len(AUDITS) >= 110
    assert len({example["id"] for example in AUDITS}) == len(AUDITS)
    assert min(Counter(example["kind"] for example in AUDITS).values()) >= 10
    classes = {finding["classification"] for example in AUDITS for finding in example["judgement"]["findings"]}
    assert classes == {*CLASSIFICATIONS}


def test_a_known_judgement_is_of_the_form_and_without_contradiction() -> None:
    for example in AUDITS:
        judgement = Judgement.model_validate(example["judgement"])
        contract = contract_of(example)
        assert all(word in contract for word in re.findall(r"function \w+", example.get("added", ""))), example
        stated = [line for line in example["audit"].splitlines() if line[0].isdigit()]
        assert len(stated) == len(judgement.findings), example
        target = judgement.target_assessment
        assert (target is None) is (example["twin"] == "patched"), example
        matches = [finding.finding_id for finding in judgement.findings if finding.classification == "TARGET_MATCH"]
        assert matches == ([target.finding_id] if target is not None and target.found else []), example
        for line, finding in zip(stated, judgement.findings, strict=True):
            if finding.classification == "HALLUCINATED":
                named = [word for word in line.replace("(", " (").split() if f"{word} ()" in line.replace("(", " (")]
                assert not any(f"function {word}(" in contract for word in named)


def accuracy(judgements: list[dict[str, Any]]) -> dict[str, float]:
    """How often a judge who gives these judgements is right, by decision."""
    given = [
        (item, [*audited, Exchange("0" * 64, Reply(json.dumps(judgement)))])
        for (item, audited), judgement in zip(items("judge"), judgements, strict=True)
    ]
    table = agreement_table(compare(given), DECISIONS)
    return dict(table.select("decision", "agreement").iter_rows())


def known() -> list[dict[str, Any]]:
    """The known judgements, placed as the audits are."""
    right = [deepcopy(example["judgement"]) for example in AUDITS]
    for example, judgement in zip(AUDITS, right, strict=True):
        lines = example["audit"].splitlines()[1:]
        for finding, line in zip(judgement["findings"], lines, strict=True):
            finding["location_claimed"] = line
    return right


def test_a_judge_who_knows_is_right_in_all_ten_decisions() -> None:
    assert accuracy(known()) == dict.fromkeys(DECISIONS, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("decision", "spoil"),
    [
        ("verdict", lambda j: j["overall_verdict"].update(said_vulnerable=None)),
        ("confidence", lambda j: j["overall_verdict"].update(confidence_expressed=0.11)),
        ("finding class", lambda j: j["findings"][0].update(classification="PARTIAL_MATCH")),
        ("location", lambda j: j["findings"][0].update(location_claimed="somewhere")),
        ("root cause", lambda j: j["target_assessment"].update(root_cause_identification=None)),
        ("attack vector", lambda j: j["target_assessment"].update(attack_vector_validity=None)),
        ("fix", lambda j: j["target_assessment"].update(fix_suggestion_validity={"score": 0.6})),
        ("type match", lambda j: j["target_assessment"].update(type_match="partial")),
    ],
)
def test_what_a_judge_gets_wrong_shows_in_its_decision_and_in_no_other(decision: str, spoil: Any) -> None:
    judgements = known()
    for example, judgement in zip(AUDITS, judgements, strict=True):
        if example["kind"] == "right":
            spoil(judgement)
    wrong = {name for name, share in accuracy(judgements).items() if share < 1}
    assert wrong == {decision}


def test_an_unreadable_judgement_has_everything_wrong() -> None:
    assert set(accuracy([{"verdict": "good"}] * len(AUDITS)).values()) == {0.0}


@pytest.mark.slow
def test_a_report_says_how_a_judge_did_once_it_was_calibrated(tmp_path: Path) -> None:
    context = RunContext("run", "solidity_audit", Lake(str(tmp_path / "lake")), Configuration())
    judge = "baseline/overlap-judge"
    assert calibration_notes(context, [judge, "nobody/asked"]) == []
    table = calibrate(context, judge)
    assert table["decision"].to_list() == list(DECISIONS)
    assert table["n"].min() >= 58  # type: ignore[operator]
    assert 0.5 < table["agreement"].mean() < 1  # type: ignore[operator]
    (note,) = calibration_notes(context, [judge, "nobody/asked"])
    assert note.startswith(f"{judge}, calibrated: right where the right judgement is known: verdict 56% [43–68%], ")
    known = accuracy_known(context, judge)
    assert known is not None
    assert known.equals(table)
    assert accuracy_known(context, "nobody/asked") is None
