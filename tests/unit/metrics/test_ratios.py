"""Ratios of sums: what they are worth in independent trials, and intervals that stay within bounds."""

import numpy as np
import polars as pl
import pytest

from evalake.metrics.columns import Columns
from evalake.metrics.estimator import bounded, effective_size, quotient
from evalake.metrics.intervals import wilson
from evalake.metrics.units import Linearised, Units, View


def line_of(values: list[float], clusters: list[int] | None = None) -> Linearised:
    """The mean of values, of which those of a cluster are one unit."""
    n = len(values)
    units = Units.of(np.zeros(n, dtype=np.int64), 1, np.array(clusters or range(n)))
    view = View(Columns(pl.DataFrame({"x": values, "n": [1] * n})), units, {"x": "x", "n": "n"})
    return view.ratio("x", "n")


def test_nothing_is_divided_by_0() -> None:
    assert np.isnan(quotient(np.array([1.0, 0.0]), np.array([0.0, 0.0]))).all()
    assert quotient(np.array([1.0]), np.array([4.0])).tolist() == [0.25]


def test_repeats_within_a_unit_are_worth_no_more_than_one() -> None:
    once, ten_times = line_of([1.0, 0.0, 1.0, 1.0]), line_of([1.0, 0.0, 1.0, 1.0] * 10, [0, 1, 2, 3] * 10)
    sizes = [effective_size(line, 0.0, 1.0, np.ones(1))[0] for line in (once, ten_times)]
    assert sizes[0] == pytest.approx(sizes[1])


def test_an_interval_between_bounds_holds_its_value_and_stays_within() -> None:
    for values in ([0.0] * 8, [1.0] * 8, [0.2, 0.9, 0.5, 1.0], [0.0, 1.0, 1.0, 1.0, 1.0]):
        low, high = bounded(line_of(values), 0.0, 1.0, 0.2)
        assert 0.0 <= low[0] <= np.mean(values) <= high[0] <= 1.0
        assert low[0] < high[0]


def test_values_all_at_one_bound_reach_as_far_as_few_trials_allow() -> None:
    low, high = bounded(line_of([1.0] * 20), 0.0, 1.0, 0.2)
    assert high[0] == pytest.approx(1.0)
    assert low[0] <= wilson(np.array([20.0]), np.array([20.0]))[0][0] + 0.05
    wider, _ = bounded(line_of([1.0] * 5), 0.0, 1.0, 0.2)
    assert wider[0] < low[0]
