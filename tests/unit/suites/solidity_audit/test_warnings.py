"""What a reader must know of a snapshot is said in sentences."""

from typing import Any

import polars as pl
import pytest

from evalake.suites.solidity_audit.cross_row_metrics import warnings
from tests.unit.suites.solidity_audit.panels.material import by_dawid_skene, told, with_panel
from tests.unit.suites.solidity_audit.support import finding, found, frame_of, judgement, line, missed, target


def test_two_judges_who_differ_stay_undecided_and_a_snapshot_says_that_they_are_two() -> None:
    lines = [told(judge, number, found) for number in range(9) for judge, found in (("a", True), ("b", False))]
    rows, frame = by_dawid_skene(lines)
    assert {row["panel_undecided"] for row in rows} == {True}
    assert any("two judges do not tell" in sentence for sentence in warnings(frame))


def test_self_judging_and_a_single_judge_are_said_loudly() -> None:
    said = warnings(frame_of([line(0, judged=found(), judge="subject"), line(1)]))
    assert any("self-judging: subject" in each for each in said)
    assert any("panel of one judge: all judgements are judge's" in each for each in warnings(frame_of([line(1)])))
    assert not any("panel of one" in each for each in said)


TWO_JUDGES = [line(0, judged=found(), judge=judge) for judge in "ab"]


def test_of_good_judgements_by_two_judges_there_is_nothing_to_say() -> None:
    assert warnings(frame_of(TWO_JUDGES)) == []


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ([line(1, judge="b")], "subject by b: 50.0% of the judgements failed; their audits are in no rate"),
        (
            [line(1, judged=judgement([finding(matches_target=False)], target()), judge="b")],
            "b: 1 of 2 imported judgements contradict themselves (column contradictions); they count as they stand",
        ),
        (
            [line(0, judged=found(confidence=None), judge="b", model="other")],
            "other stated no confidence: calibration in its sui is not measured but set by sui_calibration_unstated",
        ),
    ],
)
def test_what_weakens_the_numbers_is_said_once(more: list[dict[str, Any]], sentence: str) -> None:
    assert warnings(frame_of([*TWO_JUDGES, *more])) == [sentence]


def test_second_attempts_are_counted() -> None:
    repaired = frame_of(TWO_JUDGES).with_columns(repaired=pl.col("judge") == "a")
    assert warnings(repaired) == ["a: 1 of 1 judgements took a second attempt, for the first could not be used"]


def test_what_a_panel_left_open_is_counted() -> None:
    lines = [*TWO_JUDGES, line(1, judged=found(), judge="a"), line(1, judged=missed(), judge="b")]
    assert warnings(with_panel(lines)) == [
        "subject by panel:a+b: undecided on 50.0% of the audits, which are in no rate"
    ]


def test_a_rare_failure_is_no_news() -> None:
    lines = [line(number, judged=found(), judge=judge) for number in range(19) for judge in "ab"]
    assert warnings(frame_of([*lines, line(19, judge="a"), line(19, judged=found(), judge="b")])) == []


def test_a_consensus_of_few_audits_is_said_to_be_too_few_and_of_many_is_not() -> None:
    def said(audits: int) -> list[str]:
        lines = [
            told(judge, number, bool((number + place) % 5))
            for number in range(audits)
            for place, judge in enumerate("abc")
        ]
        return [each for each in warnings(by_dawid_skene(lines)[1]) if "Dawid" in each]

    (few,) = said(30)
    assert "30 audits are too few" in few
    assert said(120) == []
