"""Values alone are those that are measured with their intervals."""

import polars as pl
import pytest

from evalake.metrics.calibration import ece, ece_adaptive
from evalake.metrics.compute import Metric, measure, values
from tests.unit.metrics.frames import guard_samples
from tests.unit.metrics.guard import GUARD_METRICS

SHARE, RIGHT = pl.col("latency_ms") / 100_000, pl.col("verdict") == "BLOCK"
OF_SUMS = (
    *(metric for metric in GUARD_METRICS if metric.name.endswith(("rate", "accuracy", "macro", "mean", "total"))),
    Metric("ece", ece(SHARE, RIGHT)),
    Metric("ece_adaptive", ece_adaptive(SHARE, RIGHT)),
)


def test_values_are_those_that_are_measured() -> None:
    frame = guard_samples(300)
    found = values(frame, OF_SUMS, ("model", "judge"))
    measured = measure(frame, OF_SUMS).filter(slice="all")
    assert found.columns == ["model", "judge", *(metric.name for metric in OF_SUMS)]
    for row in measured.iter_rows(named=True):
        own = pl.col("model").eq(row["model"]) & pl.col("judge").eq_missing(pl.lit(row["judge"], pl.String))
        assert found.filter(own)[row["metric"]].item() == pytest.approx(row["value"])
