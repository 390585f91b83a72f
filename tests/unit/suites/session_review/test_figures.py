"""What a report shows: figures name metrics and slices that the suite measures."""

from evalake.sdk.figures import Bars
from evalake.suites.session_review.figures import FIGURES
from evalake.suites.session_review.metrics import BANDS
from evalake.suites.session_review.replies import CATEGORIES
from tests.unit.suites.declared import quantities


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
