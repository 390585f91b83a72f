"""What a report shows: figures name metrics and slices that the suite measures, and answers columns that rows have."""

from typing import Any

import polars as pl
import pytest

from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import HUMAN_LABELS
from evalake.sdk.figures import AgreementMatrix, Decisions, Figure, HeatMap, Reliability
from evalake.sdk.people import people_metrics
from evalake.suites.solidity_audit.contract import RESULTS
from evalake.suites.solidity_audit.cross_row_metrics import cross_row_metrics
from evalake.suites.solidity_audit.figures import ANSWERS, FIGURES
from evalake.suites.solidity_audit.panels.rows import ON_FINDINGS, ON_TARGETS
from evalake.suites.solidity_audit.people import LABELLING
from evalake.suites.solidity_audit.suite import SUITE
from evalake.suites.solidity_audit.truth import DEFAULTS
from tests.unit.suites.declared import metrics_named, quantities
from tests.unit.suites.solidity_audit.panels.material import DAWID_SKENE, by_dawid_skene, with_panel
from tests.unit.suites.solidity_audit.people.material import FOUND, people_say
from tests.unit.suites.solidity_audit.support import finding, frame_of, judgement, line, rows_of, target

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def across_rows() -> pl.DataFrame:
    """The metrics across rows of three judges, of a panel of either kind, and beside people's labels."""
    answers = {"a": "110101", "b": "110011", "openai/o3": "011011"}
    lines = [
        line(
            number,
            judged=judgement([finding()], target(told == "1", share=number / 6), said=told == "1"),
            judge=judge,
            model=model,
        )
        for model in ("openai/gpt-5", "other")
        for judge, words in answers.items()
        for number, told in enumerate(words)
    ]
    _, of_dawid_skene = by_dawid_skene(lines)
    labelled = [line(number, judged=FOUND) for number in range(8)]
    people = people_say(rows_of(labelled)[0], {f"s{number}": number % 2 == 0 for number in range(8)})
    assert people.schema == conform([], HUMAN_LABELS).schema
    return pl.concat(
        [
            cross_row_metrics(with_panel(lines), DEFAULTS),
            cross_row_metrics(of_dawid_skene, DAWID_SKENE),
            cross_row_metrics(frame_of(labelled, people), DEFAULTS),
        ]
    )


def test_every_figure_names_metrics_that_the_suite_measures(across_rows: pl.DataFrame) -> None:
    declared = (*SUITE.all_metrics(DEFAULTS), *ON_TARGETS, *ON_FINDINGS, *people_metrics(LABELLING))
    known = {metric.name for metric in declared} | set(across_rows["metric"])
    assert metrics_named(FIGURES) - known == set()


def test_every_decision_that_is_tabled_has_a_statistic(across_rows: pl.DataFrame) -> None:
    for figure in FIGURES:
        if isinstance(figure, Decisions):
            measured = set(across_rows.filter(slice=figure.slice)["metric"])
            for ending, _ in figure.decisions:
                assert {f"{each.metric}{ending}" for each in figure.statistics} & measured, (figure.title, ending)


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: str(figure.title))
def test_a_figure_by_slice_is_of_a_metric_that_is_measured_so(figure: Figure, across_rows: pl.DataFrame) -> None:
    if isinstance(figure, HeatMap | Reliability):
        slices = {metric.name: metric.slices for metric in SUITE.all_metrics(DEFAULTS)}
        assert all(figure.slice in slices[each.metric] for each in quantities(figure))
    if isinstance(figure, AgreementMatrix):
        assert figure.quantity.metric in set(across_rows.filter(slice=figure.slice)["metric"])


def test_titles_tell_figures_apart() -> None:
    titles = [figure.title for figure in FIGURES]
    assert len(set(titles)) == len(titles)


def test_the_columns_of_mistakes_are_those_of_rows_or_added_to_them() -> None:
    shown: set[Any] = {ANSWERS.correct, ANSWERS.label, ANSWERS.group, *ANSWERS.sample}
    shown |= {column for column, _ in ANSWERS.shown}
    assert shown - set(RESULTS.column) - {*ANSWERS.added_columns, "reply_start"} == set()
