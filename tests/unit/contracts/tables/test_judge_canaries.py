"""A day of canaries: distances and chances are shares, versions count from 1, a day is a date."""

from evalake.contracts.tables.metrics import JUDGE_CANARIES
from tests.unit.contracts.tables.rows import broken_by


def test_distances_and_chances_are_shares() -> None:
    for column in ("distance", "noise", "shift", "p_value"):
        assert broken_by(JUDGE_CANARIES, **{column: None}) == []
        assert broken_by(JUDGE_CANARIES, **{column: 1.5}) == [f"{column}_is_share"]


def test_a_day_is_a_date_and_a_version_counts_from_one() -> None:
    assert broken_by(JUDGE_CANARIES, day="22.11.2026") == ["day_is_date"]
    assert broken_by(JUDGE_CANARIES, version=0) == ["version_from_one"]


def test_a_judge_has_one_row_a_day() -> None:
    assert JUDGE_CANARIES.key == ("suite", "judge", "day")
    assert JUDGE_CANARIES.replaced_when is None
