"""What suites declare of their reports names metrics, slices and columns that they have."""

import pytest

from reports.kinds import KINDS
from suites.base import Suite
from suites.figures import Bars, Figure, HeatMap, Quantity, Ranking, Scatter
from suites.registry import suite, suite_names

SUITES = [suite(name) for name in suite_names()]


def needed(figure: Figure) -> list[tuple[Quantity, str]]:
    """Quantities of a figure, with the slice it wants of each."""
    match figure:
        case Ranking():
            return [(quantity, "all") for quantity in (figure.quantity, *figure.columns)]
        case Scatter():
            return [(figure.x, "all"), (figure.y, "all")]
        case Bars():
            return [(quantity, "all") for quantity in figure.quantities]
        case HeatMap():
            return [(figure.quantity, figure.slice)]


@pytest.mark.parametrize("declared", SUITES, ids=lambda s: s.name)
def test_figures_name_metrics_of_their_suite(declared: Suite) -> None:
    slices = {metric.name: metric.slices for metric in declared.metrics(declared.options)}
    for figure in declared.figures:
        assert type(figure) in KINDS
        for quantity, name in needed(figure):
            assert name in slices[quantity.metric], f"{figure.title} needs {quantity.metric} by {name}"


@pytest.mark.parametrize("declared", [s for s in SUITES if s.answers is not None], ids=lambda s: s.name)
def test_answers_name_columns_of_the_results(declared: Suite) -> None:
    answers = declared.answers
    assert answers is not None
    columns = {answers.correct, *answers.sample, *(column for column, _ in answers.shown)}
    columns |= {column for column in (answers.label, answers.group) if column is not None}
    assert columns <= set(declared.results.row.model_fields)
