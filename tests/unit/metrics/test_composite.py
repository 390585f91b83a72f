"""Composite metrics against scikit-learn, NumPy, and simulation; clusters, and what has no value."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import balanced_accuracy_score, f1_score, fbeta_score

from evalake.core.errors import MetricError
from evalake.metrics.composite import Composite
from evalake.metrics.estimators import Mean, Rate, Ratio
from evalake.metrics.variance import population_std
from tests.unit.metrics import guard
from tests.unit.metrics.frames import estimate, one_group

truth, said = pl.col("truth"), pl.col("said")
tp, fp, fn = ((a & b).cast(pl.Int64) for a, b in ((truth, said), (~truth, said), (truth, ~said)))
F1 = Ratio(2 * tp, 2 * tp + fp + fn, rows=pl.lit(True), heaviest=2)
F2 = Ratio(5 * tp, 5 * tp + fp + 4 * fn, rows=pl.lit(True), heaviest=5)
BALANCED = next(m for m in guard.GUARD_METRICS if m.name == "balanced_accuracy").estimator
x = pl.col("x")


@pytest.mark.slow
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40))
@settings(max_examples=50)
def test_f_scores_are_those_of_scikit_learn(rows: list[tuple[bool, bool]]) -> None:
    actual, predicted = np.array(rows).T
    frame = one_group(truth=actual, said=predicted)
    f1 = estimate(frame, F1)
    f2 = estimate(frame, F2)
    if (actual | predicted).any():
        assert f1["value"] == pytest.approx(f1_score(actual, predicted, zero_division=0.0))
        assert f2["value"] == pytest.approx(fbeta_score(actual, predicted, beta=2, zero_division=0.0))
        assert f1["n"] == len(rows)
    else:
        assert (f1["value"], f1["n"], f1["se"], f1["ci_low"]) == (None, 0, None, None)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=40))
@settings(max_examples=50)
def test_balanced_accuracy_is_that_of_scikit_learn_and_needs_both_labels(rows: list[tuple[bool, bool]]) -> None:
    harmful, right = np.array(rows).T
    blocked = np.where(harmful, right, ~right)
    frame = one_group(
        label=np.where(harmful, "malicious", "harmless"), verdict=np.where(blocked, "BLOCK", "ALLOW"), category=None
    )
    got = estimate(frame, BALANCED)
    if harmful.all() or not harmful.any():
        assert (got["value"], got["n"]) == (None, 0)
        return
    assert got["value"] == pytest.approx(balanced_accuracy_score(harmful, blocked))
    assert got["n"] == len(rows)
    if min(harmful.sum(), (~harmful).sum()) > 1:
        errors = [stats.sem(right[chosen]) for chosen in (harmful, ~harmful)]
        assert got["se"] == pytest.approx(np.hypot(*errors) / 2)
    else:
        assert got["se"] is None


@given(st.lists(st.none() | st.integers(0, 100).map(lambda i: i / 100), min_size=1, max_size=50))
@settings(max_examples=50)
def test_the_population_deviation_is_that_of_numpy(values: list[float | None]) -> None:
    got = estimate(one_group(x=pl.Series(values, dtype=pl.Float64)), population_std(x))
    known = [v for v in values if v is not None]
    assert got["n"] == len(known)
    assert got["value"] == (pytest.approx(np.std(known), abs=1e-9) if known else None)


def answers(right: list[bool], harmful: list[bool], cluster: list[int] | None = None) -> pl.DataFrame:
    blocked = [r == h for r, h in zip(right, harmful, strict=True)]
    frame = one_group(
        label=["malicious" if h else "harmless" for h in harmful], verdict=["BLOCK" if b else "ALLOW" for b in blocked]
    )
    return frame if cluster is None else frame.with_columns(cluster=pl.Series(cluster))


def test_twenty_and_twenty_all_right_is_no_certainty() -> None:
    got = estimate(answers([True] * 40, [True] * 20 + [False] * 20), BALANCED)
    low = stats.binomtest(20, 20).proportion_ci(method="wilson").low
    assert got["value"] == got["ci_high"] == 1
    assert got["ci_low"] == pytest.approx(1 - np.hypot(1 - low, 1 - low) / 2)  # MOVER from the Wilson limits
    assert not got["reliable"]  # though n is 40: each half has 20


def test_the_same_answers_five_times_say_no_more_than_once() -> None:
    rng = np.random.default_rng(1)
    right, harmful = (rng.random(60) < 0.8).tolist(), [True, False] * 30
    once = estimate(answers(right, harmful, list(range(60))), BALANCED, cluster="cluster")
    five = estimate(answers(right * 5, harmful * 5, list(range(60)) * 5), BALANCED, cluster="cluster")
    assert (five["n"], five["units"], five["n_eff"]) == (300, 60, pytest.approx(60))
    for name in ("value", "se", "ci_low", "ci_high", "n_eff"):
        assert five[name] == pytest.approx(once[name]), name


def test_a_composite_is_as_reliable_as_its_least_reliable_part() -> None:
    assert not estimate(answers([True] * 120, [True] * 100 + [False] * 20), BALANCED)["reliable"]
    assert estimate(answers([True] * 130, [True] * 100 + [False] * 30), BALANCED)["reliable"]


def test_clusters_across_labels_widen_what_they_make_vary_together() -> None:
    rng = np.random.default_rng(2)
    common = rng.random(200) < 0.6
    right = np.repeat(common, 2).tolist()
    frame = answers(right, [True, False] * 200, np.repeat(np.arange(200), 2).tolist())
    apart, together = (estimate(frame, BALANCED, **options) for options in ({}, {"cluster": "cluster"}))
    assert together["se"] == pytest.approx(np.std(common, ddof=1) / np.sqrt(200))
    assert together["ci_high"] - together["ci_low"] > 1.3 * (apart["ci_high"] - apart["ci_low"])


def test_equal_values_have_no_deviation_and_an_interval_only_between_bounds() -> None:
    free = estimate(one_group(x=[0.9] * 7), population_std(x))
    bounded = estimate(one_group(x=[0.9] * 7), population_std(x, low=0, high=1))
    assert (free["value"], bounded["value"]) == (0, 0)
    assert free["ci_high"] in (None, 0) or np.isnan(free["ci_high"])
    assert bounded["ci_low"] == 0 < bounded["ci_high"] <= 0.5


def test_a_bounded_mean_stays_within_its_bounds_and_has_a_width() -> None:
    for values in ([1.0] * 20, [1.0] * 19 + [0.9], [0.0, *[1.0] * 30]):
        got = estimate(one_group(x=values), Mean(x, low=0, high=1))
        assert 0 <= got["ci_low"] < got["value"] <= got["ci_high"] <= 1


def test_a_weighted_ratio_counts_its_rows() -> None:
    frame = one_group(hit=[1, 0, 1], weight=[3.0, 0.5, 2.0])
    got = estimate(frame, Ratio(pl.col("hit") * pl.col("weight"), pl.col("weight"), rows=pl.lit(True)))
    assert (got["value"], got["n"]) == (pytest.approx(5 / 5.5), 3)


def test_a_function_that_returns_something_else_is_refused() -> None:
    part = {"it": Rate(truth)}
    with pytest.raises(MetricError, match="Metric it, slice all: its function must return one number"):
        estimate(one_group(truth=[True]), Composite(lambda parts: np.ones(7), part))
    with pytest.raises(MetricError, match="needs at least one part"):
        Composite(lambda parts: np.ones(1), {})


def test_samples_without_cluster_are_refused() -> None:
    with pytest.raises(MetricError, match="1 samples have no cluster"):
        estimate(one_group(x=[1, 2], cluster=[None, 3]), Mean(x), cluster="cluster")
