"""A mention names what a sample lacks, in a theme with at least one sample, at no negative cost."""

from evalake.contracts.tables.people import ROADMAP_MENTIONS
from tests.unit.contracts.tables.rows import broken_by


def test_what_names_nothing_is_refused() -> None:
    assert broken_by(ROADMAP_MENTIONS, text=None, judge=None) == []
    for column in ("name", "kind", "theme", "suite", "sample_id"):
        assert broken_by(ROADMAP_MENTIONS, **{column: ""}) == [f"{column}_not_blank"]


def test_a_mention_costs_nothing_or_some_points_and_is_of_some_sample() -> None:
    assert broken_by(ROADMAP_MENTIONS, points_lost=0.0) == []
    assert broken_by(ROADMAP_MENTIONS, points_lost=-0.5) == ["points_lost_not_negative"]
    assert broken_by(ROADMAP_MENTIONS, samples=0) == ["samples_from_one"]
