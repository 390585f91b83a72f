"""What a report shows: figures name metrics and slices that the suite measures."""

import pytest

from evalake.sdk.figures import Bars, Figure, HeatMap
from evalake.sdk.people import people_metrics
from evalake.suites.session_review.figures import FIGURES
from evalake.suites.session_review.metrics import BANDS, TOOL_METRICS
from evalake.suites.session_review.people import LABELLING
from evalake.suites.session_review.replies import CATEGORIES
from evalake.suites.session_review.suite import SUITE
from tests.unit.suites.declared import metrics_named, quantities

DECLARED = {
    metric.name: metric for metric in (*SUITE.all_metrics(SUITE.options), *TOOL_METRICS, *people_metrics(LABELLING))
}


def test_every_figure_names_metrics_that_the_suite_measures() -> None:
    assert metrics_named(FIGURES) - DECLARED.keys() == set()
    assert set(SUITE.metrics.headline) <= metrics_named(FIGURES)


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: str(figure.title))
def test_a_map_is_of_a_slice_that_its_metric_has(figure: Figure) -> None:
    if isinstance(figure, HeatMap):
        assert all(figure.slice in DECLARED[each.metric].slices for each in quantities(figure))


def test_every_band_and_every_category_has_its_bar() -> None:
    bars = [figure for figure in FIGURES if isinstance(figure, Bars)]
    shown = {each.metric for figure in bars for each in quantities(figure)}
    assert {f"score_band_{band}_rate" for band in BANDS} <= shown
    assert {f"category_mean_{category}" for category in CATEGORIES} <= shown
    assert all(len(figure.colours) in (0, len(figure.quantities)) for figure in bars)


def test_a_band_is_labelled_by_its_bounds() -> None:
    labels = {each.metric: each.label for figure in FIGURES for each in quantities(figure)}
    for band, (low, high) in BANDS.items():
        assert labels[f"score_band_{band}_rate"] == f"{low} to {high}"
