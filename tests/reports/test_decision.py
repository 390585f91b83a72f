"""What an interval says of a target, and how many samples are missing."""

import pytest

from reports.decision import Decision, Verdict, decide
from tests.reports.samples import guard_metrics, report
from tests.reports.test_console import printed


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.85, 0.95, Verdict.PASS),
        (0.70, 0.85, Verdict.UNDECIDED),
        (0.70, 0.849, Verdict.FAIL),
        (0.80, 0.90, Verdict.UNDECIDED),
        (None, None, Verdict.UNDECIDED),
    ],
)
def test_the_whole_interval_decides(low: float | None, high: float | None, verdict: Verdict) -> None:
    assert decide(0.84, low, high, 50, 0.85).verdict is verdict


def test_where_less_is_better_the_ends_change_places() -> None:
    assert decide(0.1, 0.05, 0.2, 50, 0.2, higher_is_better=False).verdict is Verdict.PASS
    assert decide(0.3, 0.21, 0.4, 50, 0.2, higher_is_better=False).verdict is Verdict.FAIL
    assert decide(0.2, 0.1, 0.3, 50, 0.2, higher_is_better=False) == Decision(Verdict.UNDECIDED)


def test_missing_samples_follow_from_the_end_towards_the_target() -> None:
    above = decide(0.88, 0.82, 0.92, 100, 0.85)
    assert above == Decision(Verdict.UNDECIDED, 300), "half as wide takes four times as many"
    assert above.text == "UNDECIDED +300"
    assert decide(0.83, 0.70, 0.89, 100, 0.85).more_samples == pytest.approx(800, abs=1)
    assert decide(0.85, 0.8, 0.9, 100, 0.85).text == "UNDECIDED"


def test_a_report_says_so_in_its_table_and_headline() -> None:
    text = printed(report(guard_metrics("a", 0.88, 0.88)))
    assert "UNDECIDED +72" in text
    assert "0 of 1 reach the target of at least 85.0% score; 1 undecided" in text
