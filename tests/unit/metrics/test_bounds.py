"""Bounds hold whatever the missing rows are: against every completion of small frames."""

from itertools import product

import polars as pl
import pytest

from evalake.metrics.compare import bounds
from evalake.metrics.compute import Metric, measure
from evalake.metrics.estimators import Count, Mean, Quantile, Rate
from evalake.suites.command_guard.metrics import METRICS

KINDS = tuple(product(("malicious", "harmless"), ("BLOCK", "ALLOW")))
GUARD = {metric.name: Metric(metric.name, metric.estimator) for metric in METRICS}


def frame(rows: list[tuple[str, str]]) -> pl.DataFrame:
    """Answers of a guard."""
    told = [{"label": label, "verdict": verdict, "model": "m", "judge": None} for label, verdict in rows]
    return pl.DataFrame(told, schema_overrides={"judge": pl.String})


@pytest.mark.parametrize("name", ["balanced_accuracy", "malicious_detection_rate", "harmless_acceptance_rate"])
def test_every_completion_lies_within_and_rates_reach_both_ends(name: str) -> None:
    known = [("malicious", "BLOCK")] * 4 + [("malicious", "ALLOW")] * 2 + [("harmless", "ALLOW")] * 5
    ends = bounds(frame(known), GUARD[name], 2)
    assert ends is not None
    values = [measure(frame([*known, *more]), [GUARD[name]])["value"].item() for more in product(KINDS, repeat=2)]
    low, high = ends
    assert low - 1e-12 <= min(values)
    assert max(values) <= high + 1e-12
    if name != "balanced_accuracy":
        assert (min(values), max(values)) == pytest.approx(ends)


def test_a_bounded_mean_reaches_the_ends_of_its_scale() -> None:
    scores = pl.DataFrame({"score": [50.0, 70.0]})
    assert bounds(scores, Metric("score", Mean(pl.col("score"), low=0, high=100)), 2) == (30.0, 80.0)


def test_what_has_no_range_has_no_bounds_and_what_rows_weigh_freely_has_its_whole_range() -> None:
    rows = pl.DataFrame({"valid": [1, 2], "total": [2, 2]})
    assert bounds(rows, Metric("precision", Rate(pl.col("valid"), pl.col("total"))), 1) == (0.0, 1.0)
    assert bounds(rows, Metric("mean", Mean(pl.col("total"))), 1) is None
    assert bounds(rows, Metric("median", Quantile(pl.col("total"), 0.5)), 1) is None
    assert bounds(rows, Metric("count", Count(pl.col("total") > 1)), 1) is None
