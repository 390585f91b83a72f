"""What a report shows: figures name metrics and slices that the suite measures."""

from evalake.suites.session_review.figures import FIGURES
from evalake.suites.session_review.metrics import BANDS
from tests.unit.suites.declared import quantities


def test_a_band_is_labelled_by_its_bounds() -> None:
    labels = {each.metric: each.label for figure in FIGURES for each in quantities(figure)}
    for band, (low, high) in BANDS.items():
        assert labels[f"score_band_{band}_rate"] == f"{low} to {high}"
