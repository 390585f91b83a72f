"""Versions of judges count from 1 and begin on a date; the table was called judge_epochs once."""

from evalake.contracts.tables.metrics import JUDGE_VERSIONS
from tests.unit.contracts.tables.rows import broken_by


def test_a_version_counts_from_one_and_begins_on_a_date() -> None:
    assert broken_by(JUDGE_VERSIONS) == []
    assert broken_by(JUDGE_VERSIONS, version=0) == ["version_from_one"]
    assert broken_by(JUDGE_VERSIONS, day="2026-11-22T00:00") == ["day_is_date"]
    assert broken_by(JUDGE_VERSIONS, day="2026-1-22") == ["day_is_date"]


def test_the_first_version_of_a_judge_rests_on_no_test() -> None:
    assert broken_by(JUDGE_VERSIONS, p_value=None) == []
    assert broken_by(JUDGE_VERSIONS, p_value=-0.1) == ["p_value_is_share"]


def test_a_lake_may_hold_it_under_its_former_name() -> None:
    assert JUDGE_VERSIONS.former_tables == ("judge_epochs",)
