"""What a report shows: figures name metrics and slices that the suite measures, and answers columns that rows have."""

import polars as pl
import pytest

from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import HUMAN_LABELS
from evalake.sdk.figures import Decisions
from evalake.sdk.people import people_metrics
from evalake.suites.solidity_audit.cross_row_metrics import cross_row_metrics
from evalake.suites.solidity_audit.panels import ON_FINDINGS, ON_TARGETS
from evalake.suites.solidity_audit.people import LABELLING
from evalake.suites.solidity_audit.suite import SUITE
from evalake.suites.solidity_audit.truth import DEFAULTS
from tests.unit.suites.declared import metrics_named
from tests.unit.suites.solidity_audit.panels.material import DAWID_SKENE, by_dawid_skene, with_panel
from tests.unit.suites.solidity_audit.people.material import FOUND, people_say
from tests.unit.suites.solidity_audit.support import TRUTH, finding, found, frame_of, judgement, line, rows_of, target

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def across_rows() -> pl.DataFrame:
    """The metrics across rows of three judges, of a panel of either kind, of variants, and beside people's labels."""
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
    made = [TRUTH.model_copy(update={"base": "box", "transformation": how}) for how in ("original", "renamed")]
    varied = [
        line(number, truth, judged=found(), judge=judge)
        for judge in ("baseline/overlap-judge", "a")
        for number, truth in enumerate(made)
    ]
    return pl.concat(
        [
            cross_row_metrics(frame_of(varied), DEFAULTS),
            cross_row_metrics(with_panel(lines), DEFAULTS),
            cross_row_metrics(of_dawid_skene, DAWID_SKENE),
            cross_row_metrics(frame_of(labelled, people), DEFAULTS),
        ]
    )


def test_every_figure_names_metrics_that_the_suite_measures(across_rows: pl.DataFrame) -> None:
    declared = (*SUITE.all_metrics(DEFAULTS), *ON_TARGETS, *ON_FINDINGS, *people_metrics(LABELLING))
    known = {metric.name for metric in declared} | set(across_rows["metric"])
    assert metrics_named(SUITE.presentation.figures) - known == set()


def test_every_decision_that_is_tabled_has_a_statistic(across_rows: pl.DataFrame) -> None:
    for figure in SUITE.presentation.figures:
        if isinstance(figure, Decisions):
            measured = set(across_rows.filter(slice=figure.slice)["metric"])
            for ending, _ in figure.decisions:
                assert {f"{each.metric}{ending}" for each in figure.statistics} & measured, (figure.title, ending)
