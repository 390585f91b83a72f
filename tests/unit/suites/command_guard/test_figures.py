"""What reports on command_guard show is measured, and a mistake shows what stands in its row."""

from evalake.sdk.figures import Bars, HeatMap, Ranking
from evalake.suites.command_guard.contract import RESULTS
from evalake.suites.command_guard.figures import ANSWERS, BALANCED, ERRORS, FIGURES
from evalake.suites.command_guard.metrics import METRICS
from evalake.suites.command_guard.replies import ERROR_KINDS
from evalake.suites.command_guard.suite import SUITE

SLICES = {metric.name: metric.slices for metric in METRICS}


def test_what_ranks_is_the_first_of_the_headline() -> None:
    (ranking,) = (figure for figure in FIGURES if isinstance(figure, Ranking))
    assert ranking.quantity == BALANCED
    assert (ranking.quantity.metric, *(each.metric for each in ranking.columns)) == SUITE.metrics.headline


def test_heat_maps_are_of_slices_that_are_measured() -> None:
    maps = [figure for figure in FIGURES if isinstance(figure, HeatMap)]
    assert {figure.slice for figure in maps} == {"category", "prompt_type", "difficulty"}
    assert [figure.title for figure in maps if figure.slice not in SLICES[figure.quantity.metric]] == []


def test_every_kind_of_error_is_a_part_of_the_stack() -> None:
    (errors,) = (figure for figure in FIGURES if isinstance(figure, Bars) and figure.stacked)
    assert errors.quantities == ERRORS
    assert {quantity.metric.removesuffix("_rate").upper() for quantity in ERRORS} == set(ERROR_KINDS)


def test_a_mistake_shows_columns_of_its_row() -> None:
    shown = {column for column, _ in ANSWERS.shown} - {"reply_start"}
    assert {*shown, *ANSWERS.sample, ANSWERS.group, ANSWERS.label, ANSWERS.correct} <= RESULTS.column.keys()
