"""People's labels beside results: what most say, how much it stands for, and which findings they confirm."""

from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest

from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import HUMAN_LABELS
from tests.unit.suites.solidity_audit.people.material import on_finding, word
from tests.unit.suites.solidity_audit.support import finding, found, frame_of, judgement, line, rows_of, target


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
