"""Rates, counts, totals, means, quantiles and maxima, against NumPy, SciPy and statsmodels; and what has no value."""

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from evalake.core.errors import MetricError
from evalake.metrics.compute import Metric, measure
from evalake.metrics.estimator import Estimator
from evalake.metrics.estimators import Count, Maximum, Mean, Quantile, Rate, Total
from tests.unit.metrics.frames import estimate, estimates, one_group

values_or_nothing = st.lists(st.none() | st.floats(-1e5, 1e5).map(lambda x: round(x, 4)), min_size=1, max_size=60)
known_or_not = st.booleans() | st.none()
rows_of_conditions = st.lists(st.tuples(known_or_not, known_or_not), min_size=1, max_size=60)
Values = list[float | None]
SEVERAL = {"min_size": 5, "max_size": 15}  # of which each example is, for they are measured at once
x = pl.col("x")


def estimates_of(several: list[Values], estimator: Estimator) -> list[dict[str, Any]]:
    """What the estimator says of each list of values for `x`."""
    return estimates([one_group(x=pl.Series(values, dtype=pl.Float64)) for values in several], estimator)


@pytest.mark.slow
@given(st.lists(rows_of_conditions, **SEVERAL))
@settings(max_examples=15)
def test_a_rate_counts_rows_that_are_meant_and_known(several: list[list[tuple[bool | None, bool | None]]]) -> None:
    frames = [
        one_group(**{name: pl.Series([r[i] for r in rows], dtype=pl.Boolean) for i, name in enumerate(("good", "of"))})
        for rows in several
    ]
    for rows, got in zip(several, estimates(frames, Rate(pl.col("good"), pl.col("of"))), strict=True):
        counted = [good for good, of in rows if of and good is not None]
        assert got["n"] == len(counted)
        assert got["reliable"] == (len(counted) >= 30)
        if not counted:
            assert (got["value"], got["se"], got["ci_low"], got["ci_high"]) == (None, None, None, None)
            continue
        p, n = np.mean(counted), len(counted)
        assert got["value"] == pytest.approx(p)
        assert (got["ci_low"], got["ci_high"]) == pytest.approx(proportion_confint(sum(counted), n, method="wilson"))
        assert got["ci_low"] <= got["value"] <= got["ci_high"]
        assert got["se"] == (pytest.approx(np.std(counted, ddof=1) / np.sqrt(n)) if n > 1 else None)


def test_a_rate_of_counts_has_the_counted_units_as_denominator() -> None:
    frame = one_group(valid=[1, 0, 2, None], total=[3, 0, 2, 5])
    got = estimate(frame, Rate(pl.col("valid"), pl.col("total")))
    assert (got["value"], got["n"], got["units"]) == (3 / 5, 5, 2)
    low, high = proportion_confint(3, 5, method="wilson")
    assert got["ci_low"] < low < high < got["ci_high"]  # what one row counts hangs together


def test_a_rate_refuses_more_successes_than_units() -> None:
    with pytest.raises(MetricError, match=r"Metric it, slice all: it counts more successes than units"):
        estimate(one_group(valid=[4], total=[3]), Rate(pl.col("valid"), pl.col("total")))


def test_counts_are_null_where_there_is_nothing_to_count_among() -> None:
    frame = one_group(x=[True, False, None], among=[True, True, False])
    got = estimate(frame, Count(x, pl.col("among")))
    assert (got["value"], got["n"], got["se"], got["ci_low"]) == (1, 2, None, None)
    nothing = estimate(frame, Count(x, pl.lit(False)))
    assert (nothing["value"], nothing["n"], nothing["reliable"]) == (None, 0, False)


@pytest.mark.slow
@given(st.lists(values_or_nothing, **SEVERAL))
@settings(max_examples=15)
def test_a_total_is_known_only_if_every_term_is(several: list[Values]) -> None:
    for values, got in zip(several, estimates_of(several, Total(x)), strict=True):
        assert got["n"] == len(values)
        known = [v for v in values if v is not None]
        assert got["value"] == (pytest.approx(sum(known), abs=1e-6) if len(known) == len(values) else None)
        assert got["se"] is None


@pytest.mark.slow
@given(st.lists(values_or_nothing, **SEVERAL))
@settings(max_examples=15)
def test_a_mean_is_of_the_known_values(several: list[Values]) -> None:
    for values, got in zip(several, estimates_of(several, Mean(x)), strict=True):
        known = [v for v in values if v is not None]
        assert got["n"] == len(known)
        if not known:
            assert got["value"] is None
            continue
        assert got["value"] == pytest.approx(np.mean(known), abs=1e-9)
        if len(known) == 1:
            assert (got["se"], got["ci_low"], got["ci_high"]) == (None, None, None)
            continue
        se = stats.sem(known)
        assert got["se"] == pytest.approx(se, abs=1e-9)
        reach = stats.t.ppf(0.975, len(known) - 1) * se
        expected = (np.mean(known) - reach, np.mean(known) + reach)
        assert (got["ci_low"], got["ci_high"]) == pytest.approx(expected, abs=1e-6)


def test_a_complete_mean_is_unknown_if_any_price_is() -> None:
    frame = one_group(x=[0.1, None, 0.3])
    assert estimate(frame, Mean(1000 * x))["value"] == pytest.approx(200)
    unknown = estimate(frame, Mean(1000 * x, complete=True))
    assert (unknown["value"], unknown["se"], unknown["ci_low"], unknown["n"]) == (None, None, None, 3)
    assert estimate(frame, Mean(1000 * x, where=x.is_not_null(), complete=True))["value"] == pytest.approx(200)


@pytest.mark.slow
@pytest.mark.parametrize("q", [0.0, 0.1, 0.5, 0.9, 0.99, 1.0])
@given(st.lists(values_or_nothing, **SEVERAL))
@settings(max_examples=3)
def test_a_quantile_is_that_of_numpy_and_lies_in_its_interval(q: float, several: list[Values]) -> None:
    for values, got in zip(several, estimates_of(several, Quantile(x, q)), strict=True):
        known = [v for v in values if v is not None]
        assert got["n"] == len(known)
        if not known:
            assert got["value"] is None
            continue
        assert got["value"] == pytest.approx(np.quantile(known, q), abs=1e-9)
        if got["ci_low"] is None:
            assert (got["ci_high"], got["se"]) == (None, None)
        else:
            assert got["ci_low"] in known
            assert got["ci_high"] in known


@pytest.mark.parametrize(("n", "q"), [(20, 0.5), (100, 0.5), (100, 0.9), (1000, 0.1), (1000, 0.99), (50_000, 0.99)])
def test_the_interval_of_a_quantile_covers_it_about_95_times_in_100(n: int, q: float) -> None:
    got = estimate(one_group(x=np.arange(1.0, n + 1)), Quantile(x, q))
    low, high = int(got["ci_low"]), int(got["ci_high"])
    # the true quantile lies between two order statistics exactly if a binomial number of values lies below it
    coverage = stats.binom.cdf(high - 1, n, q) - stats.binom.cdf(low - 1, n, q)
    assert 0.93 < coverage < 0.975


def test_a_sample_too_small_to_bound_a_quantile_gives_no_interval() -> None:
    got = estimate(one_group(x=np.arange(100.0)), Quantile(x, 0.99))
    assert got["value"] == pytest.approx(98.01)
    assert (got["ci_low"], got["ci_high"], got["se"]) == (None, None, None)


def test_a_maximum_is_of_the_known_values() -> None:
    assert estimate(one_group(x=[1.0, None, 3.5]), Maximum(x))["value"] == 3.5
    assert estimate(one_group(x=[1.0, None, 3.5]), Maximum(x, where=x < 2))["n"] == 1


@pytest.mark.parametrize(
    "estimator",
    [Rate(x > 0), Mean(x), Quantile(x, 0.5), Maximum(x), Count(x > 0, x.is_not_null())],
    ids=lambda estimator: type(estimator).__name__,
)
def test_columns_of_nothing_give_nothing(estimator: Estimator) -> None:
    for frame in (one_group(x=[None, None]), one_group(x=pl.Series([None], dtype=pl.Float64))):
        got = estimate(frame, estimator)
        assert (got["value"], got["n"], got["se"], got["ci_low"], got["ci_high"]) == (None, 0, None, None, None)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_values_that_are_no_numbers_are_refused_by_the_name_of_the_metric(bad: float) -> None:
    with pytest.raises(MetricError, match="Metric it: 1 samples give it NaN or an infinite value"):
        estimate(one_group(x=[1.0, bad]), Mean(x))


def test_texts_and_fractions_are_refused_where_they_cannot_be_counted() -> None:
    with pytest.raises(MetricError, match="Metric it: its input numerator must be a number, not String"):
        estimate(one_group(x=["a"]), Mean(x))
    with pytest.raises(MetricError, match="Metric it: its input successes must be a condition or a whole number"):
        estimate(one_group(x=[0.5]), Rate(x))
    with pytest.raises(MetricError, match="between 0 and 1"):
        Quantile(x, 1.1)


TAILS = {
    "light": lambda random, shape: np.exp(0.4 * random.standard_normal(shape) - 0.08),
    "pareto 1.5": lambda random, shape: (1 + random.pareto(1.5, shape)) / 3,
    "pareto 2": lambda random, shape: (1 + random.pareto(2, shape)) / 2,
    "log-normal 2": lambda random, shape: np.exp(2 * random.standard_normal(shape) - 2),
    "few slow ones": lambda random, shape: np.where(random.random(shape) < 0.02, 50.0, 1.0) / 1.98,
}


@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("units", [100, 400])
def test_means_of_amounts_hold_what_they_promise_or_are_marked(tail: str, units: int) -> None:
    """Every population has the mean 1."""
    models = 400
    amounts = TAILS[tail](np.random.default_rng([units, len(tail)]), (models, units)).ravel()
    frame = pl.DataFrame({"model": np.repeat(np.arange(models), units), "amount": amounts})
    rows = measure(frame, [Metric("mean", Mean(pl.col("amount"), low=0))], groups=("model",))
    covered = rows.select(((pl.col("ci_low") <= 1) & (pl.col("ci_high") >= 1)).mean()).item()
    marked = 1 - rows["reliable"].mean()
    assert marked > 0.6 if covered < 0.925 else covered >= 0.925
    if tail == "light":
        assert (covered >= 0.925, marked) == (True, 0)
    if tail == "log-normal 2":
        assert marked == 1


def test_means_of_few_amounts_are_marked_and_of_counts_and_scores_are_not() -> None:
    frame = one_group(amount=[1.0 + n / 99 for n in range(99)], count=[1, 2, 3] * 33)
    assert not estimate(frame, Mean(pl.col("amount"), low=0))["reliable"]
    assert not estimate(frame, Mean(pl.col("amount"), low=0, complete=True))["reliable"]
    assert estimate(frame, Mean(pl.col("count"), low=0))["reliable"]
    assert estimate(frame, Mean(pl.col("amount") / 2, low=0, high=1))["reliable"]
