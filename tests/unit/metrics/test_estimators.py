"""Estimators: values, variances and weights of a metric."""

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from evalake.core.errors import MetricError
from evalake.metrics.calibration import ece, ece_adaptive
from evalake.metrics.composite import MacroAverage
from evalake.metrics.compute import Metric, measure, values
from evalake.metrics.estimator import Estimator
from evalake.metrics.estimators import Count, Maximum, Mean, Quantile, Rate, Total
from evalake.metrics.variance import pooled_within, population_std, variance_components
from tests.unit.metrics.frames import estimate, estimates, guard_samples, one_group
from tests.unit.metrics.guard import GUARD_METRICS

# Rates, counts, totals, means, quantiles and maxima, against NumPy, SciPy and statsmodels; and what has no value.

values_or_nothing = st.lists(st.none() | st.floats(-1e5, 1e5).map(lambda x: round(x, 4)), min_size=1, max_size=60)
known_or_not = st.booleans() | st.none()
rows_of_conditions = st.lists(st.tuples(known_or_not, known_or_not), min_size=1, max_size=60)
Values = list[float | None]
SEVERAL: dict[str, Any] = {"min_size": 5, "max_size": 15}  # of which each example is, for they are measured at once
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
    for some, got in zip(several, estimates_of(several, Total(x)), strict=True):
        assert got["n"] == len(some)
        known = [v for v in some if v is not None]
        assert got["value"] == (pytest.approx(sum(known), abs=1e-6) if len(known) == len(some) else None)
        assert got["se"] is None


@pytest.mark.slow
@given(st.lists(values_or_nothing, **SEVERAL))
@settings(max_examples=15)
def test_a_mean_is_of_the_known_values(several: list[Values]) -> None:
    for some, got in zip(several, estimates_of(several, Mean(x)), strict=True):
        known = [v for v in some if v is not None]
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
    for some, got in zip(several, estimates_of(several, Quantile(x, q)), strict=True):
        known = [v for v in some if v is not None]
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
    amounts = TAILS[tail](np.random.default_rng([units, len(tail)]), (models, units)).ravel()  # type: ignore[no-untyped-call]
    frame = pl.DataFrame({"model": np.repeat(np.arange(models), units), "amount": amounts})
    rows = measure(frame, [Metric("mean", Mean(pl.col("amount"), low=0))], groups=("model",))
    covered = rows.select(((pl.col("ci_low") <= 1) & (pl.col("ci_high") >= 1)).mean()).item()
    marked = float(np.mean(~rows["reliable"].to_numpy()))
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


# Values alone are those that are measured with their intervals.

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


# Where values differ: between repeats, between samples, between judges of the same answers.

VALUE = pl.col("score")


def results(rows: list[tuple[str, str | None, int, float]]) -> pl.DataFrame:
    frame = pl.DataFrame(
        rows,
        schema={"sample_hash": pl.String, "judge": pl.String, "replicate": pl.Int64, "score": pl.Float64},
        orient="row",
    )
    return frame.with_columns(model=pl.lit("m"), prompt_type=pl.lit("p"), cluster=pl.col("sample_hash"))


def values_of(frame: pl.DataFrame) -> dict[tuple[str | None, str], float | None]:
    rows = variance_components(frame.lazy(), VALUE).iter_rows(named=True)
    return {(row["judge"], row["metric"]): row["value"] for row in rows}


def test_repeats_and_samples_are_told_apart() -> None:
    scores = {"a": (0.2, 0.4), "b": (0.8, 1.0), "c": (0.5, 0.7)}
    got = values_of(results([(name, None, k, each[k]) for name, each in scores.items() for k in (0, 1)]))
    within = 0.02  # of two values that are 0.2 apart
    means = [0.3, 0.9, 0.6]
    assert got[None, "sd_replicate"] == pytest.approx(within**0.5)
    assert got[None, "sd_sample"] == pytest.approx((np.var(means, ddof=1) - within / 2) ** 0.5)


def test_a_judge_who_is_always_stricter_lies_apart_as_a_whole() -> None:
    scores, strict = {"a": 0.5, "b": 0.9, "c": 0.7}, {"j": 0.0, "k": 0.2}
    rows: list[tuple[str, str | None, int, float]]
    rows = [(name, judge, 0, score - less) for name, score in scores.items() for judge, less in strict.items()]
    got = values_of(results(rows))
    assert got == {("panel:j+k", "sd_judge"): pytest.approx((0.2**2 / 2) ** 0.5)}


def test_judges_who_say_the_same_lie_no_distance_apart() -> None:
    rows: list[tuple[str, str | None, int, float]]
    rows = [(name, judge, 0, score) for name, score in (("a", 0.5), ("b", 0.9)) for judge in ("j", "k")]
    assert values_of(results(rows)) == {("panel:j+k", "sd_judge"): 0.0}


def test_what_was_asked_and_judged_once_has_no_components() -> None:
    assert variance_components(results([("a", "j", 0, 0.5), ("b", "j", 0, 0.7)]).lazy(), VALUE).is_empty()


# Standard deviations of values and of repeats, and intervals of them that hold the value.

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


# Macro averages: every label counts alike, however many rows it has.


@given(st.lists(st.tuples(st.booleans(), st.sampled_from("abcd") | st.none()), min_size=1, max_size=40))
@settings(max_examples=50)
def test_a_macro_average_is_the_plain_mean_of_the_labels_rates(rows: list[tuple[bool, str | None]]) -> None:
    frame = one_group(hit=[r[0] for r in rows], label=pl.Series([r[1] for r in rows], dtype=pl.String))
    got = estimate(frame, MacroAverage(pl.col("hit"), pl.lit(True), pl.col("label")))
    labels = {label for _, label in rows if label is not None}
    rates = [np.mean([hit for hit, own in rows if own == label]) for label in labels]
    assert got["value"] == (pytest.approx(np.mean(rates)) if rates else None)
    assert got["n"] == sum(label is not None for _, label in rows)
