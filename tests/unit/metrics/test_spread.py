"""Standard deviations of values and of repeats, and intervals of them that hold the value."""

import numpy as np
import polars as pl
import pytest

from evalake.metrics.variance import pooled_within, population_std
from tests.unit.metrics.frames import estimate, one_group

X = pl.col("x")
CLUSTERED = {"cluster": "item"}


def test_the_deviation_of_repeats_is_pooled_over_items_that_have_several() -> None:
    frame = one_group(x=[1.0, 3.0, 10.0, 10.5, 11.0, 99.0], item=["a", "a", "b", "b", "b", "c"])
    got = estimate(frame, pooled_within(X, ("item",)), **CLUSTERED)
    squares = 2 * 1.0**2 + 2 * 0.5**2
    assert got["value"] == pytest.approx(np.sqrt(squares / (1 + 2)))
    assert got["n"] == 2  # the item that was asked once tells nothing about repeats


def test_repeats_that_never_differ_have_a_deviation_of_0() -> None:
    frame = one_group(x=[0.1, 0.1, 0.7, 0.7], item=["a", "a", "b", "b"])
    assert estimate(frame, pooled_within(X, ("item",)), **CLUSTERED)["value"] == 0


def test_nothing_repeated_is_no_deviation() -> None:
    got = estimate(one_group(x=[1.0, 2.0], item=["a", "b"]), pooled_within(X, ("item",)), **CLUSTERED)
    assert (got["value"], got["n"], got["ci_low"]) == (None, 0, None)


def test_rows_that_are_not_meant_are_left_out() -> None:
    got = estimate(one_group(x=[1.0, 3.0, 100.0], ok=[True, True, False]), population_std(X, pl.col("ok")))
    assert (got["value"], got["n"]) == (1.0, 2)
