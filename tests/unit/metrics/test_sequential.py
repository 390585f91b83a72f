"""Intervals for repeated looks: they hold at all looks together, where those of one look do not."""

import numpy as np
import polars as pl
import pytest

from evalake.decisions.sample_size import sizes
from evalake.metrics.compute import Metric, measure
from evalake.metrics.estimators import Rate
from evalake.metrics.intervals import wilson
from evalake.metrics.power import ERROR, FEWEST_UNITS, Anytime

MODELS, MOST = 600, 500


def looks(rate: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Whether the truth is outside at any look of a rate's interval, of one look and widened, for each of many runs."""
    rows = np.random.default_rng(seed).random((MODELS, MOST)) < rate
    once, always = np.zeros(MODELS, bool), np.zeros(MODELS, bool)
    for size in sizes(MOST):
        low, high = wilson(rows[:, :size].sum(axis=1).astype(float), np.full(MODELS, float(size)))
        value, factor = rows[:, :size].mean(axis=1), Anytime(MOST).factor(size)
        once |= (low > rate) | (high < rate)
        always |= (value - factor * (value - low) > rate) | (value + factor * (high - value) < rate)
    return once, always


@pytest.mark.parametrize(("rate", "seed"), [(0.5, 1), (0.8, 2), (0.95, 3)])
def test_looking_again_and_again_errs_rarely_only_where_intervals_are_widened(rate: float, seed: int) -> None:
    once, always = looks(rate, seed)
    assert once.mean() > 2 * ERROR  # what stopping at the first pleasing look of a 95 % interval would do
    assert always.mean() <= ERROR + 2 * np.sqrt(ERROR * (1 - ERROR) / MODELS)


def test_the_widened_interval_is_that_of_the_engine_about_its_value() -> None:
    frame = pl.DataFrame({"model": ["m"] * 50, "right": [True] * 40 + [False] * 10})
    (row,) = measure(frame, [Metric("r", Rate(pl.col("right")))], groups=("model",)).to_dicts()
    low, high = Anytime(200).widened(row["value"], row["ci_low"], row["ci_high"], row["units"])
    factor = Anytime(200).factor(50)
    assert low == pytest.approx(row["value"] - factor * (row["value"] - row["ci_low"]))
    assert high == pytest.approx(row["value"] + factor * (row["ci_high"] - row["value"]))
    assert 1.4 < factor < 1.7


def test_the_widening_is_least_at_a_quarter_of_the_samples() -> None:
    anytime = Anytime(1000)
    factors = {units: anytime.factor(units) for units in (20, 100, 250, 600, 1000)}
    assert min(factors, key=factors.__getitem__) == 250
    assert all(factor > 1.3 for factor in factors.values())


def test_few_units_and_no_interval_settle_nothing() -> None:
    assert Anytime(100).widened(0.5, 0.4, 0.6, FEWEST_UNITS - 1) == (None, None)
    assert Anytime(100).widened(0.5, None, 0.6, 50) == (None, None)
