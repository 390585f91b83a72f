"""A statistic of sums, such as a correlation, by the jackknife over units."""

import numpy as np
import polars as pl
import pytest

from evalake.metrics.estimator import Jackknife, Sums
from evalake.metrics.intervals import Array
from tests.unit.metrics.frames import estimate, one_group

X, Y = pl.col("x"), pl.col("y")
ONE = pl.lit(1)


def correlation(sums: Sums) -> Array:
    n = sums["n"]
    both = sums["xy"] - sums["x"] * sums["y"] / n
    return both / np.sqrt((sums["xx"] - sums["x"] ** 2 / n) * (sums["yy"] - sums["y"] ** 2 / n))


PEARSON = Jackknife(correlation, {"n": ONE, "x": X, "y": Y, "xy": X * Y, "xx": X * X, "yy": Y * Y}, n=ONE)


def test_repeats_of_the_same_units_make_it_no_surer() -> None:
    rng = np.random.default_rng(8)
    x, item = rng.normal(size=20), np.arange(20)
    y = x + rng.normal(size=20)
    once = estimate(one_group(x=x, y=y, item=item), PEARSON, cluster="item")
    often = estimate(one_group(x=np.tile(x, 5), y=np.tile(y, 5), item=np.tile(item, 5)), PEARSON, cluster="item")
    assert often["se"] == pytest.approx(once["se"])
    assert (often["units"], often["n"]) == (20, 100)
