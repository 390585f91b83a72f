"""Weighted rates: rows count as their weights say, and as those of a plain rate where all weigh the same."""

import polars as pl
import pytest

from evalake.metrics.estimators import Rate, WeightedRate
from tests.unit.metrics.frames import estimate, one_group

FRAME = one_group(right=[True, False, True, None], weight=[1.0, 3.0, 1.0, 9.0], alike=[2.0] * 4)
RIGHT = pl.col("right")


def test_a_success_counts_as_its_weight_says() -> None:
    got = estimate(FRAME, WeightedRate(RIGHT, weight=pl.col("weight")))
    assert (got["value"], got["n"]) == (pytest.approx(2 / 5), 3)
    assert 0 <= got["ci_low"] < got["value"] < got["ci_high"] <= 1


def test_equal_weights_give_the_plain_rate() -> None:
    assert estimate(FRAME, WeightedRate(RIGHT, weight=pl.col("alike"))) == estimate(FRAME, Rate(RIGHT))
