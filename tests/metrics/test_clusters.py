"""The bootstrap over clusters against resampling clusters one by one, and what it promises beside."""

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from metrics import Composite, Metric, Sums, macro_average, measure, ratio
from metrics.calibration import calibration_sums, ece, equal_width_bin, expected_calibration_error
from metrics.intervals import Array
from tests.metrics.frames import estimate, one_group

x, hit = pl.col("x"), pl.col("hit")


def clustered(clusters: int, seed: int = 1) -> pl.DataFrame:
    """Up to six rows a cluster, which are alike."""
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(clusters), rng.integers(1, 7, clusters))
    common = rng.gamma(2, 1, clusters)[cluster]
    return one_group(
        x=common + rng.random(len(cluster)),
        hit=rng.random(len(cluster)) < common / (2 + common),
        confidence=np.round(rng.random(len(cluster)), 2),
        cluster=[f"c{number:05d}" for number in cluster],
    )


def mean_beside_rate(s: Sums) -> Array:
    return s["x"] / s["n"] - s["hit"] / s["n"]


BESIDE = Composite(mean_beside_rate, {"x": x, "hit": hit, "n": pl.lit(True)})


@pytest.mark.parametrize("clusters", [30, 450, 4000])
def test_it_agrees_with_resampling_clusters_one_by_one(clusters: int) -> None:
    frame = clustered(clusters)
    sums = frame.group_by("cluster").agg(x.sum(), hit.sum(), n=pl.len()).sort("cluster")
    values, hits, rows = (sums[name].to_numpy().astype(float) for name in ("x", "hit", "n"))
    rng = np.random.default_rng(2)
    drawn = np.array([rng.integers(0, clusters, clusters) for _ in range(4000)])
    naive = (values[drawn].sum(axis=1) - hits[drawn].sum(axis=1)) / rows[drawn].sum(axis=1)
    got = estimate(frame, BESIDE, cluster="cluster", draws=4000)
    assert got["value"] == pytest.approx((values.sum() - hits.sum()) / rows.sum())
    assert got["se"] == pytest.approx(naive.std(), rel=0.1)
    assert (got["ci_low"], got["ci_high"]) == pytest.approx(np.quantile(naive, [0.025, 0.975]), abs=0.3 * naive.std())


def test_many_clusters_are_dealt_so_that_no_value_depends_on_the_seed() -> None:
    frame = clustered(3000)
    metrics = [Metric("beside", BESIDE), Metric("ece", ece(pl.col("confidence"), hit))]
    one, two = (measure(frame, metrics, seed=seed, cluster="cluster") for seed in (1, 2))
    assert_frame_equal(one.select("value", "n"), two.select("value", "n"), check_exact=True)
    assert not one.equals(two)


def test_neither_order_nor_company_changes_a_bit() -> None:
    frame = pl.concat([clustered(n, n).with_columns(model=pl.lit(f"m{n}")) for n in (20, 700)])
    metrics = [
        Metric("beside", BESIDE),
        Metric("ece", ece(pl.col("confidence"), hit)),
        Metric("x", ratio(x, x + 1, n=pl.lit(True))),
    ]
    together = measure(frame, metrics, seed=3, cluster="cluster", draws=200)
    shuffled = frame.sample(fraction=1.0, shuffle=True, seed=4)
    assert_frame_equal(together, measure(shuffled, metrics, seed=3, cluster="cluster", draws=200), check_exact=True)
    for model in ("m20", "m700"):
        alone = measure(frame.filter(model=model), metrics[1:2], seed=3, cluster="cluster", draws=200)
        assert_frame_equal(together.filter(model=model, metric="ece"), alone, check_exact=True)


def calibrated_share(s: Sums) -> Array:
    return s["hit"][:, 0] / s["n"][:, 0] - expected_calibration_error(s)


def all_by_bin(s: Sums) -> Array:
    return np.asarray(s["hit"].sum(axis=-1) / s["n"].sum(axis=-1) - expected_calibration_error(s))


@pytest.mark.parametrize("cluster", [None, "cluster"])
def test_sums_that_are_not_told_apart_come_once(cluster: str | None) -> None:
    sums = calibration_sums(pl.col("confidence"), hit)
    every = sums | {"hit": hit, "n": pl.lit(True)}
    by = equal_width_bin(pl.col("confidence"))
    apart = Composite(calibrated_share, every, by=by, apart=tuple(sums))
    frame = clustered(100)
    once = estimate(frame, apart, cluster=cluster)
    assert once == estimate(frame, Composite(all_by_bin, every, by=by), cluster=cluster)


def test_labels_without_number_get_a_value_but_no_interval() -> None:
    frame = one_group(hit=[True, False] * 5001, cluster=np.arange(10_002) // 3).with_row_index("label")
    got = estimate(frame, macro_average(hit, pl.lit(True), pl.col("label")), cluster="cluster")
    assert (got["value"], got["n"], got["se"], got["ci_low"]) == (0.5, 10_002, None, None)
