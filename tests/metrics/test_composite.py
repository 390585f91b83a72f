"""Composite metrics against scikit-learn and NumPy, and their bootstrap against resampling row by row."""

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import balanced_accuracy_score, f1_score, fbeta_score

from contracts.errors import MetricError
from metrics import Composite, Sums, bootstrap, macro_average, population_std, ratio
from metrics.intervals import Array
from tests.metrics import audit, guard
from tests.metrics.frames import estimate, one_group

truth, said = pl.col("truth"), pl.col("said")
confusion = {"tp": truth & said, "fp": ~truth & said, "fn": truth & ~said}
x = pl.col("x")


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40))
@settings(max_examples=50)
def test_f_scores_are_those_of_scikit_learn(rows: list[tuple[bool, bool]]) -> None:
    actual, predicted = np.array(rows).T
    frame = one_group(truth=actual, said=predicted)
    f1 = estimate(frame, Composite(audit.f1, confusion))
    f2 = estimate(frame, Composite(audit.f2, confusion))
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
    metric = next(m for m in guard.GUARD_METRICS if m.name == "balanced_accuracy")
    got = estimate(frame, metric.estimator)
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


def test_strata_keep_their_sizes_in_every_draw() -> None:
    def sizes(s: Sums) -> Array:
        return s["of"]

    frame = one_group(label=["a"] * 7 + ["b"] * 3)
    of = {"of": pl.col("label") == "a"}
    within = estimate(frame, Composite(sizes, of, strata=pl.col("label")))
    assert (within["value"], within["se"], within["ci_low"], within["ci_high"]) == (7, 0, 7, 7)
    assert estimate(frame, Composite(sizes, of))["se"] > 0


@given(st.lists(st.tuples(st.booleans(), st.sampled_from("abcd") | st.none()), min_size=1, max_size=40))
@settings(max_examples=50)
def test_a_macro_average_is_the_plain_mean_of_the_labels_rates(rows: list[tuple[bool, str | None]]) -> None:
    frame = one_group(hit=[r[0] for r in rows], label=pl.Series([r[1] for r in rows], dtype=pl.String))
    got = estimate(frame, macro_average(pl.col("hit"), pl.lit(True), pl.col("label")))
    labels = {label for _, label in rows if label is not None}
    rates = [np.mean([hit for hit, own in rows if own == label]) for label in labels]
    assert got["value"] == (pytest.approx(np.mean(rates)) if rates else None)
    assert got["n"] == sum(label is not None for _, label in rows)


def test_labels_without_number_get_a_value_but_no_interval() -> None:
    frame = one_group(hit=[True, False] * 20_000).with_row_index("label")
    got = estimate(frame, macro_average(pl.col("hit"), pl.lit(True), pl.col("label")))
    assert (got["value"], got["n"], got["se"], got["ci_low"]) == (0.5, 40_000, None, None)


@given(st.lists(st.none() | st.integers(0, 100).map(lambda i: i / 100), min_size=1, max_size=50))
@settings(max_examples=50)
def test_the_population_deviation_is_that_of_numpy(values: list[float | None]) -> None:
    got = estimate(one_group(x=pl.Series(values, dtype=pl.Float64)), population_std(x))
    known = [v for v in values if v is not None]
    assert got["n"] == len(known)
    assert got["value"] == (pytest.approx(np.std(known), abs=1e-9) if known else None)


def test_equal_values_deviate_by_exactly_nothing() -> None:
    got = estimate(one_group(x=[0.9] * 7), population_std(x))
    assert (got["value"], got["se"], got["ci_high"]) == (0, 0, 0)


def test_a_weighted_ratio_counts_its_rows() -> None:
    frame = one_group(hit=[1, 0, 1], weight=[3.0, 0.5, 2.0])
    got = estimate(frame, ratio(pl.col("hit") * pl.col("weight"), pl.col("weight"), n=pl.lit(True)))
    assert (got["value"], got["n"]) == (pytest.approx(5 / 5.5), 3)


def test_one_sample_has_a_value_but_no_uncertainty() -> None:
    got = estimate(one_group(truth=[True], said=[True]), Composite(audit.f1, confusion))
    assert (got["value"], got["n"], got["se"], got["ci_low"], got["ci_high"]) == (1, 1, None, None, None)


def spread_of_means(s: Sums) -> Array:
    return s["x"] / s["n"] + s["hit"] / s["n"]


def sample(n: int, digits: int) -> pl.DataFrame:
    rng = np.random.default_rng(n)
    return one_group(x=np.round(rng.gamma(2, 1, n), digits), hit=rng.random(n) < 0.3, cluster=np.arange(n) // 5)


MEANS = Composite(spread_of_means, {"x": x, "hit": pl.col("hit"), "n": pl.lit(True)})


@pytest.mark.parametrize(("n", "digits"), [(40, 2), (450, 12), (4000, 1), (4000, 12)])
def test_the_bootstrap_agrees_with_resampling_row_by_row(n: int, digits: int) -> None:
    frame = sample(n, digits)
    values, hits = frame["x"].to_numpy(), frame["hit"].to_numpy()
    naive = stats.bootstrap(
        (values, hits),
        lambda v, h, axis=-1: v.mean(axis=axis) + h.mean(axis=axis),
        paired=True,
        vectorized=True,
        method="percentile",
        n_resamples=4000,
        batch=200,
        rng=np.random.default_rng(5),
    )
    got = estimate(frame, MEANS, draws=4000)
    assert got["se"] == pytest.approx(naive.standard_error, rel=0.06)
    ends = (naive.confidence_interval.low, naive.confidence_interval.high)
    assert (got["ci_low"], got["ci_high"]) == pytest.approx(ends, abs=0.25 * naive.standard_error)


def test_the_limit_for_many_cells_agrees_with_drawing_them_all(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = sample(3000, 12)
    limit = estimate(frame, MEANS, draws=4000)
    monkeypatch.setattr(bootstrap, "MOST_CELLS", 10_000)
    exact = estimate(frame, MEANS, draws=4000)
    assert limit["se"] == pytest.approx(exact["se"], rel=0.06)
    ends = (exact["ci_low"], exact["ci_high"])
    assert (limit["ci_low"], limit["ci_high"]) == pytest.approx(ends, abs=0.25 * exact["se"])


def test_merged_cells_keep_the_covariance_of_what_varies_together() -> None:
    def correlation_like(s: Sums) -> Array:
        return s["x"] - s["y"]

    frame = one_group(x=np.random.default_rng(1).random(2000)).with_columns(y=2 * x)
    got = estimate(frame, Composite(correlation_like, {"x": x, "y": pl.col("y")}), draws=4000)
    assert got["se"] == pytest.approx(np.sqrt(2000) * np.std(frame["x"].to_numpy()), rel=0.06)


@pytest.mark.parametrize("clusters", [40, 3000])
def test_clusters_are_resampled_whole(clusters: int) -> None:
    rng = np.random.default_rng(clusters)
    common = np.repeat(rng.random(clusters), 5)
    frame = one_group(x=common, hit=rng.random(5 * clusters) < 0.5, cluster=np.repeat(np.arange(clusters), 5))
    got = estimate(frame, ratio(x, pl.lit(True)), cluster="cluster", draws=4000)
    rows = estimate(frame, ratio(x, pl.lit(True)), draws=4000)
    assert got["value"] == pytest.approx(rows["value"])
    assert got["se"] == pytest.approx(np.std(common[::5]) / np.sqrt(clusters), rel=0.12)
    assert rows["se"] == pytest.approx(got["se"] / np.sqrt(5), rel=0.12)


def test_a_cluster_of_several_labels_adds_to_each() -> None:
    frame = one_group(hit=[True, False] * 30, label=["a", "b"] * 30, cluster=np.arange(60) // 2)
    got = estimate(frame, macro_average(pl.col("hit"), pl.lit(True), pl.col("label")), cluster="cluster")
    assert (got["value"], got["se"]) == (0.5, 0)


def test_samples_without_cluster_are_refused() -> None:
    with pytest.raises(MetricError, match="1 samples have no cluster"):
        estimate(one_group(x=[1, 2], cluster=[None, 3]), ratio(x, pl.lit(True)), cluster="cluster")


def one_too_few(s: Sums) -> Array:
    return s["x"].sum()


def test_mistakes_in_a_declaration_are_named() -> None:
    frame = one_group(x=[1, 2])
    with pytest.raises(MetricError, match="Metric it: its function must return one number per draw"):
        estimate(frame, Composite(one_too_few, {"x": x}))
    with pytest.raises(MetricError, match="at least one sum"):
        Composite(one_too_few, {})
    bins: Callable[..., np.ndarray] = np.zeros_like
    with pytest.raises(MetricError, match="give `by`"):
        Composite(one_too_few, {"x": x}, bins=bins)
    with pytest.raises(MetricError, match="at most 59 sums"):
        estimate(frame, Composite(one_too_few, {f"x{i}": x + i for i in range(60)}))
