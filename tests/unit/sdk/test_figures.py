"""What suites declare of their reports names metrics, slices and columns that they have."""

import pytest

from evalake.reports.kinds import KINDS
from evalake.sdk import figures
from evalake.sdk.people import people_metrics
from evalake.suites.registry import suite, suite_names


def needed(figure: figures.Figure) -> list[tuple[figures.Quantity, str]]:
    """Quantities of a figure, with the slice it wants of each."""
    match figure:
        case figures.Ranking():
            return [(quantity, "all") for quantity in (figure.quantity, *figure.columns)]
        case figures.Scatter():
            return [(figure.x, "all"), (figure.y, "all")]
        case figures.Bars():
            return [(quantity, "all") for quantity in figure.quantities]
        case figures.Reliability():
            return [(figure.accuracy, figure.slice), (figure.confidence, figure.slice)]
        case figures.ByJudge():
            return [(figure.quantity, "all")]
        case figures.Statistics():
            return [(quantity, "all") for quantity in figure.quantities]
        case figures.Decisions():
            return [(quantity, figure.slice) for quantity in figure.statistics]
        case figures.HeatMap() | figures.ByPart() | figures.AgreementMatrix():
            return [(figure.quantity, figure.slice)]


@pytest.mark.parametrize("name", suite_names())
def test_figures_name_metrics_of_their_suite(name: str) -> None:
    declared = suite(name)
    people = () if declared.people is None else people_metrics(declared.people)
    slices = {metric.name: metric.slices for metric in (*declared.all_metrics(declared.options), *people)}
    for figure in declared.presentation.figures:
        assert type(figure) in KINDS
        for quantity, part in needed(figure):
            if quantity.metric in slices or declared.metrics.across_rows is None:
                assert part in slices[quantity.metric], f"{figure.title} needs {quantity.metric} by {part}"


@pytest.mark.parametrize("name", suite_names())
def test_bars_with_colours_of_their_own_have_one_for_each_quantity(name: str) -> None:
    bars = [figure for figure in suite(name).presentation.figures if isinstance(figure, figures.Bars)]
    assert all(len(each.colours) in (0, len(each.quantities)) for each in bars)


@pytest.mark.parametrize("name", suite_names())
def test_answers_name_columns_of_the_results(name: str) -> None:
    declared = suite(name)
    columns: set[str] = set()
    if answers := declared.presentation.answers:
        columns = {*answers.sample, *(column for column, _ in answers.shown)}
        if answers.mistake is None:
            columns.add(answers.correct)
        columns |= {column for column in (answers.label, answers.group) if column is not None}
        if answers.reply_of is not None:
            columns = columns - {"reply_start"} | set(answers.reply_of.meta.root_names())
        if answers.mistake is not None:
            columns |= set(answers.mistake.meta.root_names())
        columns -= set(answers.added_columns)
    assert columns <= declared.results.column.keys()
