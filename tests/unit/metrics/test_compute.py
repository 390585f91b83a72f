"""The engine: groups, slices, order, seeds, schema, and what it refuses."""

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from benchmarks.judgements import judged_audits
from evalake.core.errors import MetricError
from evalake.metrics import compute
from evalake.metrics.calibration import ece, ece_adaptive
from evalake.metrics.compute import MEASURES, Metric, measure
from evalake.metrics.estimators import Mean, Rate
from evalake.suites.registry import suite as find_suite
from evalake.suites.solidity_audit.truth import DEFAULTS
from tests.unit.metrics.frames import guard_samples, one_group
from tests.unit.metrics.guard import GUARD_METRICS, blocked, malicious

CALIBRATION = tuple(
    Metric(name, metric(pl.col("latency_ms") / 100_000, pl.col("verdict") == "BLOCK"), slices=("all", "dataset"))
    for name, metric in (("ece", ece), ("ece_adaptive", ece_adaptive))
)
EVERYTHING = (*GUARD_METRICS, *CALIBRATION)


@pytest.mark.slow
@given(st.integers(1, 400), st.integers(0, 10**6), st.booleans())
@settings(max_examples=15)
def test_the_order_of_rows_changes_nothing(n: int, seed: int, clustered: bool) -> None:
    frame = guard_samples(n, seed)
    cluster = "cluster" if clustered else None
    once = measure(frame, EVERYTHING, cluster=cluster)
    again = measure(frame.sample(fraction=1.0, shuffle=True), EVERYTHING, cluster=cluster)
    assert_frame_equal(once, again, abs_tol=1e-9)


def test_the_order_of_many_rows_with_fractions_changes_nothing() -> None:
    frame = guard_samples(20_000).with_columns(latency_ms=pl.col("latency_ms") / 7)
    shuffled = frame.sample(fraction=1.0, shuffle=True)
    once, again = (measure(f.lazy(), EVERYTHING, cluster="cluster") for f in (frame, shuffled))
    assert_frame_equal(once, again, abs_tol=1e-9)


@pytest.mark.parametrize("kept", range(0, len(EVERYTHING), 4))
def test_a_metric_is_the_same_whatever_is_measured_beside_it(kept: int) -> None:
    frame = guard_samples(500)
    everything = measure(frame, EVERYTHING)
    alone = measure(frame, EVERYTHING[kept : kept + 1])
    assert_frame_equal(everything.filter(metric=EVERYTHING[kept].name), alone, check_exact=True)


def test_groups_are_measured_as_if_alone() -> None:
    frame = guard_samples(600)
    together = measure(frame, EVERYTHING)
    for model, judge in (("a", None), ("b", "k")):
        own = pl.col("model").eq(model) & pl.col("judge").eq_missing(pl.lit(judge, pl.String))
        alone = measure(frame.filter(own), EVERYTHING)
        assert_frame_equal(together.filter(own), alone, check_exact=True)


def test_slices_add_up_to_the_whole() -> None:
    result = measure(guard_samples(1000), GUARD_METRICS)
    sliced = result.filter(metric="malicious_detection_rate", slice="category")
    whole = result.filter(metric="malicious_detection_rate", slice="all")
    keys = ["model", "judge"]
    summed = sliced.group_by(keys).agg(pl.col("n").sum(), successes=(pl.col("n") * pl.col("value")).sum()).sort(keys)
    assert summed["n"].to_list() == whole["n"].to_list()
    assert summed["successes"].to_list() == pytest.approx((whole["n"] * whole["value"]).to_list())


def test_rows_are_in_order_of_group_metric_slice_and_value() -> None:
    metrics = [Metric("z", Rate(blocked), slices=("dataset", "all"), tier=2), Metric("a", Rate(malicious))]
    frame = guard_samples(200).filter(pl.col("judge").is_null() | (pl.col("model") == "a"))
    rows = measure(frame, metrics).select("model", "judge", "metric", "tier", "slice", "slice_value").rows()
    one_group_of_rows = [
        ("z", 2, "dataset", "x"),
        ("z", 2, "dataset", "y"),
        ("z", 2, "all", ""),
        ("a", None, "all", ""),
    ]
    keys = [("a", None), ("a", "j"), ("a", "k"), ("b", None)]
    assert rows == [(*key, *row) for key in keys for row in one_group_of_rows]


def test_rows_without_a_slice_value_are_in_no_slice() -> None:
    frame = one_group(hit=[True, False, True], kind=[None, 3, None])
    result = measure(frame, [Metric("it", Rate(pl.col("hit")), slices=("all", "kind"))])
    assert result.select("slice", "slice_value", "value", "n").rows() == [("all", "", 2 / 3, 3), ("kind", "3", 0.0, 1)]
    nowhere = measure(frame.with_columns(kind=None), [Metric("it", Rate(pl.col("hit")), slices=("kind",))])
    assert nowhere.is_empty()


def test_no_rows_give_an_empty_result_of_the_same_schema() -> None:
    frame = guard_samples(50)
    empty, full = (measure(f, EVERYTHING) for f in (frame.clear(), frame))
    assert empty.is_empty()
    assert empty.schema == full.schema
    assert list(full.schema.items()) == [("model", pl.String), ("judge", pl.String), *MEASURES.items()]


def test_other_groups_can_be_told_apart() -> None:
    frame = guard_samples(100)
    result = measure(frame, [Metric("it", Rate(blocked))], groups=("dataset",))
    assert result.columns[:2] == ["dataset", "slice"]
    assert result["dataset"].to_list() == ["x", "y"]


def test_a_huge_count_is_a_denominator_like_any_other() -> None:
    frame = one_group(part=[10**14], whole=[10**15])
    row = measure(frame, [Metric("it", Rate(pl.col("part"), pl.col("whole")))]).row(0, named=True)
    assert (row["value"], row["n"]) == (0.1, 10**15)
    assert row["ci_low"] < 0.1 < row["ci_high"]


def test_a_category_of_one_sample_has_a_rate_without_error() -> None:
    frame = one_group(hit=[True, False, True], kind=["a", "a", "b"])
    result = measure(frame, [Metric("it", Rate(pl.col("hit")), slices=("kind",))])
    assert result.filter(slice_value="b").select("value", "n", "se").row(0) == (1.0, 1, None)


def test_what_cannot_be_measured_is_named() -> None:
    frame = one_group(x=[1.0])
    with pytest.raises(MetricError, match=r"^Metric it cannot be computed from these samples: .*nope"):
        measure(frame, [Metric("it", Mean(pl.col("nope")))])
    with pytest.raises(MetricError, match="no column nope"):
        measure(frame, [Metric("it", Mean(pl.col("x")), slices=("nope",))])
    with pytest.raises(MetricError, match="Two metrics are called it"):
        measure(frame, [Metric("it", Mean(pl.col("x")))] * 2)


def test_a_scan_of_many_groups_is_measured_like_the_frame_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = find_suite("solidity_audit")
    declared, frame = suite.all_metrics(DEFAULTS), judged_audits(1_200)
    at_once = measure(frame, declared, cluster="cluster")
    frame.sample(fraction=1.0, shuffle=True, seed=1).write_parquet(tmp_path / "rows.parquet")
    monkeypatch.setattr(compute, "ROWS_AT_ONCE", 300)
    for rows in (frame, pl.scan_parquet(tmp_path / "rows.parquet")):
        assert_frame_equal(measure(rows, declared, cluster="cluster"), at_once, rel_tol=1e-12, abs_tol=1e-12)
