"""Calibration error against loops over the bins as they are defined, and scikit-learn."""

from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import brier_score_loss

from evalake.metrics import calibration
from evalake.metrics.compute import Metric, measure
from evalake.metrics.estimators import Mean
from tests.unit.metrics.frames import estimate, estimates, one_group

confidence, correct = pl.col("confidence"), pl.col("correct")
stated = st.integers(0, 100).map(lambda i: i / 100)
samples = st.lists(st.tuples(stated | st.none(), st.booleans()), min_size=1, max_size=60)


def gaps(rows: list[tuple[float, bool]]) -> list[tuple[float, int]]:
    """(gap, rows) of each bin (lo, hi] that has rows; exactly 0 is in the first."""
    found = []
    for k in range(10):
        own = [(c, ok) for c, ok in rows if k / 10 < c <= (k + 1) / 10 or (k == 0 and c == 0)]
        if own:
            found.append((float(abs(np.mean([ok for _, ok in own]) - np.mean([c for c, _ in own]))), len(own)))
    return found


@pytest.mark.slow
@given(st.lists(samples, min_size=5, max_size=15))
@settings(max_examples=15)
def test_errors_are_the_mean_and_the_largest_gap_of_ten_bins(several: list[list[tuple[float | None, bool]]]) -> None:
    frames = [
        one_group(confidence=pl.Series([c for c, _ in rows], dtype=pl.Float64), correct=[ok for _, ok in rows])
        for rows in several
    ]
    errors = (estimates(frames, metric(confidence, correct)) for metric in (calibration.ece, calibration.mce))
    for rows, expected, largest in zip(several, *errors, strict=True):
        known = [(c, ok) for c, ok in rows if c is not None]
        if not known:
            assert (expected["value"], expected["n"], largest["value"]) == (None, 0, None)
            continue
        bins = gaps(known)
        assert expected["n"] == largest["n"] == len(known)
        assert expected["value"] == pytest.approx(sum(gap * n for gap, n in bins) / len(known), abs=1e-9)
        assert largest["value"] == pytest.approx(max(gap for gap, _ in bins), abs=1e-9)


def test_the_edges_of_bins_belong_to_the_bin_below() -> None:
    edges = pl.DataFrame({"confidence": [0.0, 0.1, 0.10001, 0.3, 0.6, 0.7, 0.99, 1.0, None]})
    assert edges.select(calibration.equal_width_bin(confidence)).to_series().to_list() == [0, 0, 1, 2, 5, 6, 9, 9, None]


@given(st.lists(stated, min_size=1, max_size=200))
def test_bins_of_equal_mass_never_split_equal_confidences(values: list[float]) -> None:
    level = np.unique(values, return_inverse=True)[1] + 1
    bins = calibration.equal_mass_bins(level, np.zeros(len(values), np.int64), 1)
    by_level = [set(bins[level == each].tolist()) for each in range(1, level.max() + 1)]
    assert all(len(each) == 1 for each in by_level)
    assert [min(each) for each in by_level] == sorted(min(each) for each in by_level)
    assert bins.min() == 1
    assert bins.max() <= 10


def test_bins_of_equal_mass_are_equal_where_confidences_allow_in_each_group() -> None:
    level = np.tile(np.arange(200) + 1, 2)
    bins = calibration.equal_mass_bins(level, np.repeat([0, 1], 200), 2)
    assert np.bincount(bins[:200])[1:].tolist() == np.bincount(bins[200:])[1:].tolist() == [20] * 10
    assert calibration.equal_mass_bins(np.array([0, 3, 3]), np.array([0, 0, 1]), 1).tolist()[:2] == [0, 1]


def test_adaptive_error_tells_clustered_confidences_apart() -> None:
    # ten equal bins put .91 and .99 together, where over- and underconfidence cancel out
    frame = one_group(confidence=[0.91] * 50 + [0.99] * 50, correct=[True] * 50 + [True] * 40 + [False] * 10)
    adaptive = estimate(frame, calibration.ece_adaptive(confidence, correct))
    assert estimate(frame, calibration.ece(confidence, correct))["value"] == pytest.approx(abs(0.90 - 0.95))
    assert adaptive["value"] == pytest.approx((0.09 + 0.19) / 2)
    assert adaptive["n"] == 100
    assert adaptive["ci_low"] < adaptive["value"] < adaptive["ci_high"]


def test_adaptive_error_leaves_out_what_has_no_confidence() -> None:
    frame = one_group(confidence=[0.2, None, 0.8], correct=[False, True, True])
    got = estimate(frame, calibration.ece_adaptive(confidence, correct))
    assert (got["value"], got["n"]) == (pytest.approx(0.2), 2)


def test_bins_are_of_each_slice_s_own_data() -> None:
    frame = one_group(confidence=[0.5, 0.6] * 20, correct=[True, False] * 20, part=["a"] * 20 + ["b"] * 20)
    metric = Metric("it", calibration.ece_adaptive(confidence, correct), slices=("all", "part"))
    assert measure(frame, [metric])["value"].to_list() == pytest.approx([0.55] * 3)


@given(st.lists(st.tuples(stated, st.booleans()), min_size=1, max_size=40))
@settings(max_examples=30)
def test_the_mean_square_gap_is_the_brier_score_of_scikit_learn(rows: list[tuple[float, bool]]) -> None:
    frame = one_group(confidence=[c for c, _ in rows], correct=[ok for _, ok in rows])
    got = estimate(frame, Mean((confidence - correct.cast(pl.Float64)) ** 2))
    expected = brier_score_loss([ok for _, ok in rows], [c for c, _ in rows], labels=[False, True])
    assert got["value"] == pytest.approx(expected)


@pytest.mark.slow
@given(st.lists(st.lists(st.tuples(stated, st.booleans()), min_size=2, max_size=60), min_size=5, max_size=15))
@settings(max_examples=5)
def test_the_parts_of_the_brier_score_add_up(several: list[list[tuple[float, bool]]]) -> None:
    # one confidence a bin, where the decomposition is exact
    frames = [
        one_group(confidence=[np.ceil(c * 10) / 10 if c else 0.1 for c, _ in rows], correct=[ok for _, ok in rows])
        for rows in several
    ]
    names: tuple[Any, ...] = ("reliability", "resolution", "uncertainty")
    parts = [estimates(frames, calibration.CalibrationError(confidence, correct, name)) for name in names]
    wholes = estimates(frames, Mean((confidence - correct.cast(pl.Float64)) ** 2))
    for reliability, resolution, uncertainty, whole in zip(*parts, wholes, strict=True):
        summed = reliability["value"] - resolution["value"] + uncertainty["value"]
        assert summed == pytest.approx(whole["value"], abs=1e-9)
        for part in (reliability, resolution, uncertainty):
            assert part["ci_low"] - 1e-12 <= part["value"] <= part["ci_high"] + 1e-12


def test_a_debiased_error_is_nearer_to_the_truth() -> None:
    rng = np.random.default_rng(4)
    stated_confidence = rng.choice([0.55, 0.75, 0.85, 0.95], 200 * 60)
    for off, kept in ((0.0, 0.8), (0.25, 60)):
        frame = one_group(
            confidence=stated_confidence,
            correct=rng.random(200 * 60) < stated_confidence - off,
            group=np.repeat(np.arange(200), 60),
        )
        metrics = [
            Metric("raw", calibration.ece(confidence, correct)),
            Metric("debiased", calibration.ece_debiased(confidence, correct)),
        ]
        found = measure(frame, metrics, groups=("group",)).group_by("metric").agg(pl.col("value").mean())
        error = {name: abs(value - off) for name, value in found.rows()}
        assert error["debiased"] < kept * error["raw"]
        assert error["debiased"] < 0.05


@pytest.mark.parametrize(("size", "together"), [(20, 1), (200, 1), (50, 5)])
@pytest.mark.parametrize("stated_by", ["spread", "sure"])
def test_the_interval_of_a_calibrated_model_holds_0_and_that_of_another_the_error(
    size: int, together: int, stated_by: str
) -> None:
    """The error of a calibrated model is 0; that of one sure of itself is what its confidences say too much."""
    random = np.random.default_rng([size, together, len(stated_by)])
    models, true = 200, {}
    levels = np.linspace(0.05, 0.95, 10) if stated_by == "spread" else np.array([0.8, 0.9, 0.95, 0.99])
    frames = []
    for kind, slope in (("calibrated", 1.0), ("sure of itself", 0.2)):
        said = random.choice(levels, (models, size, 1))
        chance = 0.5 + slope * (said - 0.5)
        alike = random.random((models, size, 1)) < 0.3
        shared, own = random.random((models, size, 1)), random.random((models, size, together))
        right = np.where(alike, shared, own) < chance
        true[kind] = float(np.mean(np.abs((1 - slope) * (levels - 0.5))))
        names = [f"{kind} {n}" for n in range(models)]
        frames.append(
            pl.DataFrame(
                {
                    "model": np.repeat(names, size * together),
                    "confidence": np.repeat(said.ravel(), together),
                    "correct": right.ravel(),
                    "cluster": np.repeat(np.arange(models * size), together),
                }
            )
        )
    declared = ("ece", "ece_debiased", "ece_adaptive")
    metrics = [Metric(name, getattr(calibration, name)(confidence, correct)) for name in declared]
    measured = measure(pl.concat(frames).with_columns(judge=pl.lit(None, pl.String)), metrics, cluster="cluster")
    for (kind, value), metric in product(true.items(), metrics):
        rows = measured.filter(pl.col("model").str.starts_with(kind), metric=metric.name)
        error = 0.0 if kind == "calibrated" else value
        holds = rows.select(((pl.col("ci_low") <= error + 1e-12) & (pl.col("ci_high") >= error - 1e-12)).mean()).item()
        assert holds >= 0.925 - 2 * (0.925 * 0.075 / models) ** 0.5, (kind, metric.name)
        if kind == "calibrated":
            assert (rows["ci_low"] > 0).mean() <= 0.025 * 1.1 + 2 * (0.025 * 0.975 / models) ** 0.5, metric.name


def test_errors_that_chance_does_not_explain_are_above_0() -> None:
    frame = one_group(confidence=[0.95] * 60, correct=[True] * 30 + [False] * 30)
    assert estimate(frame, calibration.ece(confidence, correct))["ci_low"] > 0.2
