"""Bounds hold whatever the missing rows are: against every completion of small frames."""

from itertools import product

import polars as pl
import pytest

from evalake.metrics.calibration import ece
from evalake.metrics.compute import Metric, measure
from evalake.metrics.estimators import Count, Mean, Quantile, Rate
from evalake.metrics.limits import bounds
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


def test_no_missing_row_weighs_more_than_the_heaviest_known_one() -> None:
    rows = pl.DataFrame({"valid": [1, 2], "total": [2, 2]})
    assert bounds(rows, Metric("precision", Rate(pl.col("valid"), pl.col("total"))), 1) == (0.5, 5 / 6)
    assert bounds(rows, Metric("count", Count(pl.col("total") > 1)), 1) == (2.0, 3.0)


def test_what_has_no_range_has_no_bounds() -> None:
    rows = pl.DataFrame({"total": [2, 2]})
    assert bounds(rows, Metric("mean", Mean(pl.col("total"))), 1) is None
    assert bounds(rows, Metric("median", Quantile(pl.col("total"), 0.5)), 1) is None


def test_rows_without_a_judgement_are_missing_where_they_count_and_lack_the_value() -> None:
    found = [True] * 6 + [False] * 2 + [None] * 4
    rows = pl.DataFrame({"found": found, "vulnerable": [True] * 11 + [False], "failed": [x is None for x in found]})
    opened = rows.filter("failed")
    rate = Metric("found", Rate(pl.col("found"), pl.col("vulnerable")))
    assert bounds(rows, rate, 0, opened) == pytest.approx((6 / 11, 9 / 11))
    assert bounds(rows, Metric("failed", Rate(pl.col("failed"))), 0, opened) == pytest.approx((4 / 12, 4 / 12))


def test_every_completion_of_a_calibration_error_lies_within() -> None:
    known = [(0.9, True), (0.8, False), (0.95, True), (0.3, False)]
    error = Metric("ece", ece(pl.col("confidence"), pl.col("correct")))
    kinds = tuple(product((0.05, 0.85, 0.95), (True, False)))

    def of(rows: list[tuple[float, bool]]) -> pl.DataFrame:
        return pl.DataFrame(rows, schema=["confidence", "correct"], orient="row").with_columns(
            model=pl.lit("m"), judge=pl.lit(None, pl.String)
        )

    ends = bounds(of(known), error, 2)
    assert ends is not None
    values = [measure(of([*known, *more]), [error])["value"].item() for more in product(kinds, repeat=2)]
    assert ends[0] - 1e-12 <= min(values)
    assert max(values) <= ends[1] + 1e-12
    assert ends[1] - ends[0] < 0.7
