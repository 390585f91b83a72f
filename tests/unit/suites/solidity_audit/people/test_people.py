"""People beside judges: questions, joins, agreement and comparison."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest

from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import HUMAN_LABELS
from evalake.metrics.agreement import WEIGHED_PAIRS
from evalake.suites.solidity_audit.contract import FINDINGS, RESULTS
from evalake.suites.solidity_audit.cross_row_metrics import cross_row_metrics
from evalake.suites.solidity_audit.people import DECISIONS, compare_with_people, finding_precision, in_words
from evalake.suites.solidity_audit.truth import DEFAULTS
from tests.unit.suites.solidity_audit.people import material
from tests.unit.suites.solidity_audit.people.material import FOUND, on_finding, people_say, word
from tests.unit.suites.solidity_audit.support import (
    CONTRACT,
    SAFE,
    TRUTH,
    finding,
    found,
    frame_of,
    judgement,
    line,
    missed,
    rows_of,
    target,
)

# Judges are held against people's labels, and their rates corrected by them.


def test_judges_are_held_against_people_and_corrected_by_them() -> None:
    """The judge finds every target; people say that it is wrong about every fourth."""
    lines = [line(n, judged=FOUND) for n in range(80)] + [line(80 + n, SAFE, judgement(said=False)) for n in range(5)]
    results, _ = rows_of(lines)
    answers = {f"s{n}": n % 4 != 0 for n in range(40)}
    frame = frame_of(lines, people_say(results, answers))
    rows = {row["metric"]: row for row in cross_row_metrics(frame, DEFAULTS).iter_rows(named=True)}
    corrected = rows["target_detection_rate_corrected"]
    assert corrected["value"] == pytest.approx(0.75)
    assert corrected["n"] == 40
    assert corrected["ci_low"] < 0.75 < corrected["ci_high"] < 1.0
    assert rows["judge_human_agreement"]["value"] == pytest.approx(0.75)
    assert rows["judge_found_human_missed"]["value"] == 10
    assert rows["judge_missed_human_found"]["value"] == 0
    assert (rows["judge_human_kappa"]["value"], rows["judge_human_kappa"]["n"]) == (0.0, 40)
    assert (rows["finding_precision_corrected"]["value"], rows["finding_precision_corrected"]["n"]) == (None, 0)


def test_audits_without_findings_do_not_raise_the_corrected_precision() -> None:
    """Half of the audits find nothing; of the others' two findings people confirm 0 to 2, whatever the judge says."""
    rng = np.random.default_rng(20)
    total = np.tile([0, 2], 1000)
    judge, human = (np.where(total > 0, rng.integers(low, 3, len(total)), 0) for low in (1, 0))
    drawn = rng.random(len(total)) < 0.2
    rows = pl.DataFrame({"total_findings": total, "valid_findings": judge, "human_valid_findings": human})
    labelled = pl.Series(drawn) & (rows["total_findings"] > 0)  # where there is no finding there is none to label
    rows = rows.with_columns(
        pl.when(labelled).then("human_valid_findings").alias("human_valid_findings"),
        human_weight=pl.when(pl.Series(drawn)).then(5.0),
        sample_hash=pl.int_range(pl.len()).cast(pl.String),
        cluster=pl.int_range(pl.len()).cast(pl.String),
        prompt_hash=pl.lit("p"),
        replicate=pl.lit(0),
    )
    corrected = finding_precision(rows)
    assert corrected is not None
    assert corrected.ci_low < human.sum() / total.sum() < corrected.ci_high
    assert corrected.labels == labelled.sum()


def test_picked_labels_correct_nothing() -> None:
    lines = [line(n, judged=FOUND) for n in range(40)]
    results, _ = rows_of(lines)
    frame = frame_of(lines, people_say(results, {f"s{n}": False for n in range(20)}, chance=None))
    rows = {row["metric"]: row for row in cross_row_metrics(frame, DEFAULTS).iter_rows(named=True)}
    assert rows["target_detection_rate_corrected"]["value"] is None
    assert rows["judge_human_agreement"]["value"] == 0.0


def test_without_labels_nothing_is_said_of_people() -> None:
    rows = cross_row_metrics(frame_of([line(0, judged=FOUND)]), DEFAULTS)
    assert not rows["metric"].str.contains("human|corrected").any()


# Judges and experts side by side: a pair for each decision that both took, and none for what one of them left open.


def pairs(lines: Sequence[dict[str, Any]], *given: tuple[str, str | float], **more: Any) -> list[dict[str, Any]]:
    """The pairs of the judges of these lines and of a person who answers so about the first of them."""
    results, findings = rows_of(lines)
    row = results.row(0, named=True)
    labels = [word(row, question, said, **more) for question, said in given]
    return compared(results, findings, labels)


def compared(results: Any, findings: Any, labels: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    people = conform(list(labels), HUMAN_LABELS)
    table = compare_with_people({RESULTS.table: results, FINDINGS.table: findings, HUMAN_LABELS.table: people})
    assert table.schema == WEIGHED_PAIRS
    assert set(table["decision"]) <= set(DECISIONS)
    return table.to_dicts()


COUNTS = line(judged=found())
MISSED = line(judged=missed(said=False))


@pytest.mark.parametrize(
    ("judged", "question", "answer", "decision", "words", "agrees"),
    [
        (COUNTS, "verdict", "vulnerable", "verdict", ("vulnerable", "vulnerable"), True),
        (MISSED, "verdict", "vulnerable", "verdict", ("safe", "vulnerable"), False),
        (COUNTS, "target_found", "yes", "target found", ("yes", "yes"), True),
        (MISSED, "target_found", "yes", "target found", ("no", "yes"), False),
        (COUNTS, "type_correct", "yes", "type match", ("yes", "yes"), True),
        (MISSED, "type_correct", "yes", "type match", ("no", "yes"), False),
        (COUNTS, "location_correct", "no", "location", ("no", "no"), True),
        (COUNTS, "reasoning_quality", "accurate", "reasoning", ("accurate", "accurate"), True),
        (line(judged=found(0.5)), "reasoning_quality", "accurate", "reasoning", ("partial", "accurate"), False),
        (MISSED, "reasoning_quality", "incorrect", "reasoning", ("incorrect", "incorrect"), True),
    ],
)
def test_a_word_of_the_judge_stands_beside_the_persons(
    judged: dict[str, Any], question: str, answer: str, decision: str, words: tuple[str, str], agrees: bool
) -> None:
    (pair,) = pairs([judged], (question, answer))
    assert (pair["judge"], pair["decision"]) == ("judge", decision)
    assert ((pair["first"], pair["second"]), pair["agrees"]) == (words, agrees)
    assert (pair["weight"], pair["first_score"], pair["second_score"]) == (1.0, None, None)


@pytest.mark.parametrize("question", ["root_cause_score", "attack_vector_score", "fix_score"])
def test_scores_one_level_of_the_rubric_apart_agree(question: str) -> None:
    near, far = (pairs([COUNTS], (question, score))[0] for score in (0.75, 0.5))
    assert (near["first_score"], near["second_score"], near["agrees"]) == (1.0, 0.75, True)
    assert (far["first_score"], far["second_score"], far["agrees"]) == (1.0, 0.5, False)
    assert (near["first"], near["second"]) == (None, None)


def test_a_finding_is_compared_by_its_class_and_by_whether_it_is_valid() -> None:
    results, findings = rows_of([line(judged=judgement([finding(), finding(2, "HALLUCINATED")], target()))])
    row = results.row(0, named=True)
    labels = [on_finding(row, 1, "BONUS_VALID"), on_finding(row, 2, "BONUS_VALID"), on_finding(row, 7, "BONUS_VALID")]
    found = [(each["decision"], each["first"], each["agrees"]) for each in compared(results, findings, labels)]
    assert sorted(found) == [
        ("finding class", "HALLUCINATED", False),
        ("finding class", "TARGET_MATCH", False),
        ("finding valid", "no", False),
        ("finding valid", "yes", True),
    ]


@pytest.mark.parametrize(
    ("judged", "question", "answer"),
    [
        (line(judged=missed(said=None)), "verdict", "safe"),
        (line(judged=judgement([finding()], target(type_match=None))), "type_correct", "yes"),
        (MISSED, "root_cause_score", 0.5),
        (line(judged=judgement([finding()], target(share=None))), "reasoning_quality", "accurate"),
        (COUNTS, "overall_quality", "high"),
        (line(), "target_found", "yes"),
    ],
)
def test_where_one_of_them_says_nothing_there_is_no_pair(judged: dict[str, Any], question: str, answer: Any) -> None:
    assert pairs([judged], (question, answer)) == []


def test_every_judge_of_an_audit_is_compared_and_no_panel() -> None:
    lines = [line(judged=found(), judge="a"), line(judged=missed(), judge="b")]
    results, findings = rows_of(lines)
    labels = [word(results.row(0, named=True), "target_found", "yes")]
    of_panel = results.head(1).with_columns(judge=results["judge"].head(1).str.replace("a", "panel:a+b"))
    found_by = compared(results.vstack(of_panel), findings, labels)
    assert {each["judge"]: each["agrees"] for each in found_by} == {"a": True, "b": False}


def test_a_pair_counts_for_as_many_as_the_audit_was_drawn_for() -> None:
    (pair,) = pairs([COUNTS], ("target_found", "yes"), inclusion_probability=0.5, draw="1")
    assert pair["weight"] == 2.0


def test_words_on_another_suite_are_none_on_this_one() -> None:
    assert pairs([COUNTS], ("target_found", "yes"), suite="another") == []


# People's labels beside results: what most say, how much it stands for, and which findings they confirm.


def results(lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return rows_of(lines)[0].sort("sample_id", "judge").to_dicts()


def joined(lines: Sequence[dict[str, Any]], *labels: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows that metrics read, in the order of samples and judges."""
    return frame_of(lines, conform(list(labels), HUMAN_LABELS)).sort("sample_id", "judge").to_dicts()


@pytest.mark.parametrize(
    ("answers", "said"), [([], None), (["yes"], True), (["no", "yes", "no"], False), (["yes", "no"], None)]
)
def test_on_a_target_most_people_are_right_and_as_many_either_way_say_nothing(
    answers: list[str], said: bool | None
) -> None:
    lines = [line(judged=found(), judge=judge) for judge in ("a", "b")]
    row, _ = results(lines)
    labels = [word(row, "target_found", answer, f"person {n}") for n, answer in enumerate(answers)]
    assert [each["human_target_found"] for each in joined(lines, *labels)] == [said, said], "whichever judge"


def test_findings_are_counted_where_people_labelled_every_one() -> None:
    judged = judgement([finding(1), finding(2, "HALLUCINATED")], target())
    lines = [line(number, judged=judged) for number in range(2)]
    whole, part = results(lines)
    labels = [
        on_finding(whole, 1, "TARGET_MATCH"),
        on_finding(whole, 2, "BONUS_VALID"),
        on_finding(part, 1, "BONUS_VALID"),
    ]
    assert [each["human_valid_findings"] for each in joined(lines, *labels)] == [2, None]


def test_a_finding_is_of_the_judge_that_numbered_it() -> None:
    lines = [line(judged=found(), judge=judge) for judge in ("a", "b")]
    of_a, _ = results(lines)
    assert [each["human_valid_findings"] for each in joined(lines, on_finding(of_a, 1, "TARGET_MATCH"))] == [1, None]


@pytest.mark.parametrize(
    ("classes", "confirmed", "rejected"),
    [
        ([], 0, 0),
        (["TARGET_MATCH"], 1, 0),
        (["INFORMATIONAL"], 0, 1),
        (["BONUS_VALID", "PARTIAL_MATCH"], 1, 0),
        (["BONUS_VALID", "HALLUCINATED"], 0, 0),
    ],
)
def test_a_bonus_counts_for_every_judge_where_people_are_of_one_mind(
    classes: list[str], confirmed: int, rejected: int
) -> None:
    judged = judgement([finding(), finding(2, "BONUS_VALID")], target())
    lines = [line(judged=judged, judge=judge) for judge in ("a", "b")]
    row, _ = results(lines)
    labels = [on_finding(row, 2, name, f"person {number}") for number, name in enumerate(classes)]
    for each in joined(lines, *labels):
        assert (each["bonus_confirmed"], each["bonus_rejected"]) == (confirmed, rejected), each["judge"]


@pytest.mark.parametrize(
    ("confidence", "tenth"),
    [(0.0, "0.0 to 0.1"), (0.1, "0.0 to 0.1"), (0.11, "0.1 to 0.2"), (1.0, "0.9 to 1.0"), (None, None)],
)
def test_a_confidence_is_in_the_tenth_of_the_calibration_error(confidence: float | None, tenth: str | None) -> None:
    (row,) = joined([line(judged=found(confidence=confidence))])
    assert row["confidence_bin"] == tenth


def test_the_findings_of_a_judgement_stand_beside_it() -> None:
    rows = joined([line(0, judged=judgement([finding(), finding(2, "HALLUCINATED")], target())), line(1)])
    classes = [{each["classification"] for each in row["findings"] or ()} for row in rows]
    assert classes == [{"TARGET_MATCH", "HALLUCINATED"}, set()]
    assert rows[1]["findings"] is None


def test_no_row_is_lost_or_doubled() -> None:
    lines = [line(number, judged=found(), judge=judge) for number in range(3) for judge in "ab"] + [line(9)]
    labels = [word(row, "target_found", "yes", who) for row in results(lines) for who in ("ann", "bob")]
    frame = frame_of(lines, conform(labels, HUMAN_LABELS).unique("label_id"))
    assert frame.height == frame.select(pl.struct("sample_id", "judge").n_unique()).item() == len(lines)


# People are asked blind first, about what is worth a look, and beside the truth only what needs it.


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_sheet_tells_nothing_of_the_truth_where_people_must_be_blind(form: Any) -> None:
    named = [
        (f"bank-{n}/{twin}", truth) for n in range(3) for twin, truth in (("vulnerable", TRUTH), ("patched", SAFE))
    ]
    lines = [
        line(truth=truth, judged=material.FOUND if truth is TRUTH else material.MISSED_NOTHING, sample_id=name)
        for name, truth in named
    ]
    results, findings = rows_of(lines)
    lines = material.sheet_of(results, findings, 6)
    text = material.write_sheet(lines, form)
    assert "bank" not in text
    assert "patched" not in text
    assert "cluster" not in text
    labels = material.read_sheet(
        text.replace('"target_found": null', '"target_found": true'), form, "ada", material.WHEN
    )
    assert not labels.refused
    assert {row["sample_hash"] for row in labels.rows} <= {*results["sample_hash"]}
    blind, told = lines[:6], lines[6:]
    for each in blind:
        assert (each["fill_in"], each["contract"], each["audit"]) == ("verdict", CONTRACT, "the audit's words")
        assert each["known_vulnerability"] is None
    assert {each["fill_in"] for each in told} == {"target_found, rcir, ava, fsv", "classification"}
    assert all(each["known_vulnerability"] for each in told)  # a safe contract's audit has neither target nor findings
    assert {each["sample_hash"] for each in told} == {*results.filter("is_vulnerable")["sample_hash"]}


def test_what_is_known_is_told_in_words_beside_the_questions_that_need_it() -> None:
    known = TRUTH.model_copy(update={"vulnerable_lines": [7], "root_cause": "it pays before it books", "fix": None})
    words = in_words(known)
    assert words.splitlines()[0] == f"type: {known.vulnerability_type}"
    assert "line 7" in words
    assert "root cause: it pays before it books" in words
    assert "fix" not in words
    assert in_words(SAFE) == "none is known: the contract counts as safe"


def test_audits_worth_a_look_weigh_more() -> None:
    results, _ = rows_of(material.lines_of_run())
    names = results.select("sample_hash", "sample_id").unique()
    weighed = material.candidates(results, material.NOBODY).join(names, on="sample_hash")
    weights = dict(weighed.select("sample_id", "weight").iter_rows())
    assert weights == {"s0": 1.0, "s1": 5.0, "s2": 4.0, "s3": 3.0}
