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


def test_it_is_the_statistic_of_all_rows_with_an_interval_around_it() -> None:
    rng = np.random.default_rng(7)
    x = rng.normal(size=60)
    y = x + rng.normal(size=60)
    got = estimate(one_group(x=x, y=y), PEARSON)
    assert got["value"] == pytest.approx(np.corrcoef(x, y)[0, 1])
    assert -1 < got["ci_low"] < got["value"] < got["ci_high"] < 1
    assert (got["n"], got["units"]) == (60, 60)


def test_repeats_of_the_same_units_make_it_no_surer() -> None:
    rng = np.random.default_rng(8)
    x, item = rng.normal(size=20), np.arange(20)
    y = x + rng.normal(size=20)
    once = estimate(one_group(x=x, y=y, item=item), PEARSON, cluster="item")
    often = estimate(one_group(x=np.tile(x, 5), y=np.tile(y, 5), item=np.tile(item, 5)), PEARSON, cluster="item")
    assert often["se"] == pytest.approx(once["se"])
    assert (often["units"], often["n"]) == (20, 100)


def test_where_nothing_varies_it_is_unknown_and_its_rows_are_counted() -> None:
    got = estimate(one_group(x=[1.0] * 5, y=[1.0, 2.0, 3.0, 4.0, 5.0]), PEARSON)
    assert (got["value"], got["se"], got["ci_low"], got["n"]) == (None, None, None, 5)
