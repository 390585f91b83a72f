"""What a reader must know of a snapshot is said in sentences."""

from suites.solidity_audit.warnings import warnings
from tests.suites.solidity_audit.panels.material import by_dawid_skene, told
from tests.suites.solidity_audit.support import (
    found,
    frame_of,
    line,
)


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
