"""What reports on command_guard show is measured, and a mistake shows what stands in its row."""

from evalake.sdk.figures import Bars, Ranking
from evalake.suites.command_guard.figures import BALANCED, ERRORS, FIGURES
from evalake.suites.command_guard.replies import ERROR_KINDS
from evalake.suites.command_guard.suite import SUITE


def test_what_ranks_is_the_first_of_the_headline() -> None:
    (ranking,) = (figure for figure in FIGURES if isinstance(figure, Ranking))
    assert ranking.quantity == BALANCED
    assert (ranking.quantity.metric, *(each.metric for each in ranking.columns)) == SUITE.metrics.headline


def test_every_kind_of_error_is_a_part_of_the_stack() -> None:
    (errors,) = (figure for figure in FIGURES if isinstance(figure, Bars) and figure.stacked)
    assert errors.quantities == ERRORS
    assert {quantity.metric.removesuffix("_rate").upper() for quantity in ERRORS} == set(ERROR_KINDS)
