"""Judges and experts side by side: a pair for each decision that both took, and none for what one of them left open."""

from collections.abc import Sequence
from typing import Any

import pytest

from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import HUMAN_LABELS
from evalake.metrics.agreement import WEIGHED_PAIRS
from evalake.suites.solidity_audit.contract import FINDINGS, RESULTS
from evalake.suites.solidity_audit.people import DECISIONS, compare_with_people
from tests.unit.suites.solidity_audit.people.material import on_finding, word
from tests.unit.suites.solidity_audit.support import finding, found, judgement, line, missed, rows_of, target


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


FOUND = line(judged=found())
MISSED = line(judged=missed(said=False))


@pytest.mark.parametrize(
    ("judged", "question", "answer", "decision", "words", "agrees"),
    [
        (FOUND, "verdict", "vulnerable", "verdict", ("vulnerable", "vulnerable"), True),
        (MISSED, "verdict", "vulnerable", "verdict", ("safe", "vulnerable"), False),
        (FOUND, "target_found", "yes", "target found", ("yes", "yes"), True),
        (MISSED, "target_found", "yes", "target found", ("no", "yes"), False),
        (FOUND, "type_correct", "yes", "type match", ("yes", "yes"), True),
        (MISSED, "type_correct", "yes", "type match", ("no", "yes"), False),
        (FOUND, "location_correct", "no", "location", ("no", "no"), True),
        (MISSED, "location_correct", "yes", "location", ("no", "yes"), False),
        (FOUND, "reasoning_quality", "accurate", "reasoning", ("accurate", "accurate"), True),
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
    near, far = (pairs([FOUND], (question, score))[0] for score in (0.75, 0.5))
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
        (FOUND, "overall_quality", "high"),
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
    (pair,) = pairs([FOUND], ("target_found", "yes"), inclusion_probability=0.5, draw="1")
    assert pair["weight"] == 2.0


def test_words_on_another_suite_are_none_on_this_one() -> None:
    assert pairs([FOUND], ("target_found", "yes"), suite="another") == []
