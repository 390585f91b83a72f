"""What estimators have in common: what makes the same of the same columns is estimated once."""

import numpy as np
import polars as pl

from evalake.metrics.columns import Columns
from evalake.metrics.compute import Inputs, Metric
from evalake.metrics.estimator import estimated
from evalake.metrics.estimators import Mean, Rate
from evalake.metrics.units import Units, View
from tests.unit.metrics.frames import one_group

FRAME = one_group(right=[True, False, True], x=[0.1, 0.2, 0.4])
RIGHT, X = pl.col("right"), pl.col("x")


def test_estimators_declared_alike_are_estimated_once_and_others_for_themselves() -> None:
    declared = (Rate(RIGHT), Rate(RIGHT), Mean(X, low=0, high=1), Mean(X, low=0))
    metrics = [Metric(str(number), estimator) for number, estimator in enumerate(declared)]
    inputs = Inputs.read(FRAME.lazy(), metrics, ("model",), None)
    units = Units.of(np.zeros(3, dtype=np.int64), 1, inputs.cluster)
    kept: dict[object, object] = {}
    views = [View(Columns(inputs.rows()), units, columns, _kept=kept) for columns in inputs.columns]
    rate, again, bounded, amount = (estimated(each, view) for each, view in zip(declared, views, strict=True))
    assert rate is again
    assert bounded is not amount
    assert bounded.value[0] == amount.value[0]
