"""Which columns hold an answer, and on which scale, follows from the contract."""

from evalake.contracts.contract import scales
from evalake.contracts.tables import CALLS, METRIC_SNAPSHOTS
from tests.unit.contracts.examples import EXAMPLE


def test_words_and_truth_values_have_no_scale_and_bounded_numbers_have_theirs() -> None:
    assert scales(EXAMPLE) == {"state": None, "flag": None, "count": (0, 10), "share": (0, 1)}


def test_numbers_without_two_ends_are_no_answers_nor_is_where_a_row_comes_from() -> None:
    assert "origin" not in scales(CALLS)
    assert scales(CALLS) == {}
    assert scales(METRIC_SNAPSHOTS) == {"reliable": None}
