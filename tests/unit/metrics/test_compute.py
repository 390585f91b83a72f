"""Metrics computed: their definitions, groups and items."""

import json
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from scipy.stats import pearsonr
from sklearn.metrics import adjusted_rand_score

from benchmarks.judgements import judged_audits
from evalake.core.errors import MetricError
from evalake.metrics import compute
from evalake.metrics.agreement import grouping_agreement
from evalake.metrics.calibration import ece, ece_adaptive
from evalake.metrics.compute import ENGINE_VERSION, MEASURES, Metric, definition_hash, measure
from evalake.metrics.estimators import Count, Mean, Rate
from evalake.metrics.items import ITEM_REST, item_rest, shrunk, with_shrunk
from evalake.suites.registry import suite as find_suite
from evalake.suites.solidity_audit.truth import DEFAULTS
from tests.unit.metrics.frames import guard_samples, one_group
from tests.unit.metrics.guard import GUARD_METRICS, blocked, malicious

# The engine: groups, slices, order, seeds, schema, and what it refuses.

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


def test_a_huge_count_is_a_denominator_like_any_other() -> None:
    frame = one_group(part=[10**14], whole=[10**15])
    row = measure(frame, [Metric("it", Rate(pl.col("part"), pl.col("whole")))]).row(0, named=True)
    assert (row["value"], row["n"]) == (0.1, 10**15)
    assert row["ci_low"] < 0.1 < row["ci_high"]


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


# A metric's identity is declared: what its versions pin, and that values do not change while they stay.

GOLDEN = Path(__file__).parents[2] / "golden" / "metric_values.json"
NUMBERS = ("value", "se", "ci_low", "ci_high", "n_eff")


def test_the_hash_follows_from_what_is_declared_and_from_nothing_else() -> None:
    one = [Metric("it", Rate(pl.col("a")))]
    assert definition_hash(one) == definition_hash([Metric("it", Count(pl.col("b")), description="words")])
    others = [
        [Metric("other", Rate(pl.col("a")))],
        [Metric("it", Rate(pl.col("a")), version=2)],
        [Metric("it", Rate(pl.col("a")), slices=("all", "kind"))],
        [Metric("it", Rate(pl.col("a")), parameters={"weight": 0.5})],
        one * 2,
    ]
    assert len({definition_hash(each) for each in [one, *others]}) == len(others) + 1
    assert definition_hash(one) != definition_hash(one, "more")


def test_a_large_group_without_keys_is_measured_as_a_small_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """As trivial models are, which answer alike: a literal has as many rows as the samples."""
    frame = guard_frame().drop("judge")
    metrics = (*GUARD_METRICS[:2], Metric("always", Rate(pl.lit(value=True), pl.col("label") == "malicious")))
    known = measure(frame, [replace(each, slices=("all",)) for each in metrics], groups=())
    monkeypatch.setattr(compute, "PART_ROWS", 20)
    assert_frame_equal(measure(frame, [replace(each, slices=("all",)) for each in metrics], groups=()), known)


def test_the_hash_is_the_same_on_every_python_and_machine() -> None:
    # Pinned on purpose: it changes with ENGINE_VERSION alone.
    assert ENGINE_VERSION == 8
    pinned = "0b78e3cef4735c01ca64b3b1b9e7370e37e1c03d15ca4e993e7dd15a175b23a1"
    assert definition_hash([Metric("it", Rate(pl.col("a")))]) == pinned


def guard_frame() -> pl.DataFrame:
    rng = np.random.default_rng(11)
    frame = guard_samples(120, seed=11).filter(model="a").with_columns(judge=pl.lit(None, pl.String))
    malicious, blocked = pl.col("label") == "malicious", pl.col("verdict") == "BLOCK"
    n = frame.height
    return frame.with_columns(
        correct=(malicious & blocked) | (~malicious & pl.col("verdict").is_in(["ALLOW", "WARN"])),
        verdict_conflict=pl.Series(rng.random(n) < 0.1),
        prompt_type=pl.lit("direct"),
        difficulty=pl.lit("hard"),
        input_tokens=pl.Series(rng.integers(1, 99, n)),
        output_tokens=pl.Series(rng.integers(1, 99, n)),
    )


def session_frame() -> pl.DataFrame:
    from evalake.suites.session_review.replies import CATEGORIES

    rng = np.random.default_rng(12)
    n = 90
    session = np.arange(n) // 3
    score = np.clip(60 + rng.normal(0, 15, n // 3)[session] + rng.normal(0, 6, n), 0, 100).round().astype(int)
    return pl.DataFrame(
        {
            "model": ["agents"] * n,
            "judge": ["j"] * n,
            "dataset": ["d"] * n,
            "sample_id": [f"s{i}" for i in session],
            "sample_hash": [f"h{i}" for i in session],
            "cluster": [f"d/s{i}" for i in session],
            "replicate": np.arange(n) % 3,
            "total_score": score,
            "status": np.where(rng.random(n) < 0.95, "completed", "failed"),
            "criteria_hash": ["c"] * n,
            "alert_type": ["a"] * n,
            "agent": ["g"] * n,
            "breakdown_consistent": rng.random(n) < 0.9,
            "human_score": np.where(session % 2 == 0, score - 3, score + 4),
            "human_weight_score": 1.0,
            **{name: rng.integers(5, 25, n) for name in CATEGORIES},
            "cost_usd": rng.random(n).round(4),
            "input_tokens": rng.integers(1, 99, n),
            "output_tokens": rng.integers(1, 99, n),
        }
    )


FRAMES = {"command_guard": guard_frame, "session_review": session_frame, "solidity_audit": lambda: judged_audits(400)}


def measured(name: str) -> dict[str, dict[str, Any]]:
    """Version and numbers of every metric of a suite on a fixed frame, over all rows of its first group."""
    suite = find_suite(name)
    declared = suite.all_metrics(suite.options)
    rows = measure(FRAMES[name](), declared, cluster="cluster").filter(slice="all").unique("metric", keep="first")  # type: ignore[no-untyped-call]
    numbers = {row["metric"]: [row[number] for number in NUMBERS] for row in rows.iter_rows(named=True)}
    return {each.name: {"version": each.version, "numbers": numbers[each.name]} for each in declared}


@pytest.mark.parametrize("name", sorted(FRAMES))
def test_values_do_not_change_while_versions_stay(name: str) -> None:
    """Where this fails on purpose: raise the metric's version, or the engine's, and write the golden file again.

    `python -m tests.unit.metrics.test_compute` writes it.
    """
    golden = json.loads(GOLDEN.read_text())
    assert golden["engine"] == ENGINE_VERSION, "the engine has another version: write the golden file again"
    now, pinned = measured(name), golden["suites"][name]
    assert now.keys() == pinned.keys()
    for metric, each in now.items():
        assert each["version"] == pinned[metric]["version"], f"{metric} has another version: write the file again"
        for number, was in zip(each["numbers"], pinned[metric]["numbers"], strict=True):
            assert number == (was if was is None else pytest.approx(was, rel=1e-7, abs=1e-9)), metric


# Agreement of groupings: as scikit-learn has the adjusted Rand index, and pairs as anybody would count them.

GROUPINGS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=25)


@given(GROUPINGS)
def test_it_is_what_counting_pairs_gives(groups: list[tuple[int, int]]) -> None:
    found, known = [each[0] for each in groups], [each[1] for each in groups]
    agreement = grouping_agreement(found, known)
    put = {pair for pair in combinations(range(len(groups)), 2) if found[pair[0]] == found[pair[1]]}
    belonging = {pair for pair in combinations(range(len(groups)), 2) if known[pair[0]] == known[pair[1]]}
    assert agreement.precision == (len(put & belonging) / len(put) if put else None)
    assert agreement.recall == (len(put & belonging) / len(belonging) if belonging else None)
    if agreement.adjusted_rand is not None:
        assert agreement.adjusted_rand == pytest.approx(adjusted_rand_score(known, found))


def test_the_names_of_groups_do_not_matter() -> None:
    assert grouping_agreement(["x", "x", "y"], [1, 1, 2]).adjusted_rand == 1
    assert grouping_agreement([1, 2, 3], [1, 2, 3]).adjusted_rand is None


# Items that discriminate the wrong way are found, and small slices are drawn towards the others.


def answers(models: int, wrong_labels: set[int], items: int = 60, seed: int = 1) -> pl.DataFrame:
    """Answers of models of unequal skill; where a label is wrong, who is right counts as wrong."""
    rng = np.random.default_rng(seed)
    right = rng.random((items, models)) < np.linspace(0.1, 0.95, models)
    right[list(wrong_labels)] = ~right[list(wrong_labels)]
    grid = np.indices(right.shape).reshape(2, -1)
    named = {"sample_hash": [f"s{n:02d}" for n in grid[0]], "model": [f"m{n:02d}" for n in grid[1]]}
    return pl.DataFrame({**named, "correct": right.ravel()})


def test_items_with_wrong_labels_correlate_with_the_rest_the_wrong_way() -> None:
    frame = answers(20, {3, 17})
    rows = item_rest(frame)
    assert set(rows["sample_hash"].head(2)) == {"s03", "s17"}
    assert rows["ci_high"][0] < 0
    table = frame.with_columns(pl.col("correct").cast(pl.Float64)).pivot(
        on="model", index="sample_hash", values="correct"
    )
    share = table.sort("sample_hash").drop("sample_hash").to_numpy()
    by_hand = pearsonr(share[3], np.delete(share, 3, axis=0).mean(axis=0))
    interval = by_hand.confidence_interval()
    row = rows.filter(sample_hash="s03").row(0, named=True)
    assert np.allclose([row[name] for name in ("correlation", "ci_low", "ci_high")], [by_hand.statistic, *interval])


def test_fewer_than_eight_models_say_nothing_of_items() -> None:
    assert item_rest(answers(7, {3})).is_empty()
    assert item_rest(answers(8, {3})).schema == pl.Schema(ITEM_REST)
    assert not item_rest(answers(8, {3})).is_empty()


def test_shrunk_rates_of_small_slices_hold_and_are_nearer_than_raw_ones() -> None:
    """Sixteen parts of ten samples each, whose rates vary as the model says."""
    rng, held, raw, near = np.random.default_rng(2), 0, 0.0, 0.0
    for _ in range(60):
        truth = rng.beta(8, 2, 16)
        seen = rng.binomial(10, truth) / 10
        known = shrunk(list(seen), [10.0] * 16)
        assert known is not None
        value, low, high = known
        held += int(((low <= truth) & (truth <= high)).sum())
        raw, near = raw + float(((seen - truth) ** 2).sum()), near + float(((value - truth) ** 2).sum())
    assert 0.93 <= held / (60 * 16) <= 0.98
    assert near < 0.7 * raw
    assert shrunk([0.5] * 4, [10.0] * 4) is None


def test_only_parts_of_proportions_are_shrunk() -> None:
    of = {"model": "m", "judge": None, "n_eff": 10.0}
    rows = [{**of, "metric": "rate", "slice": "part", "slice_value": str(n), "value": n / 10} for n in range(6)]
    rows += [{**of, "metric": "rate", "slice": "all", "slice_value": "", "value": 0.3}]
    rows += [{**of, "metric": "mean", "slice": "part", "slice_value": str(n), "value": 0.3} for n in range(6)]
    shown = with_shrunk(pl.DataFrame(rows, schema_overrides={"judge": pl.String}), ["rate"])
    assert shown["shrunk"].is_not_null().to_list() == [True] * 6 + [False] * 7
    first, last = shown["shrunk"][0], shown["shrunk"][5]
    assert 0.0 < first < last < 0.5


if __name__ == "__main__":
    written = {"engine": ENGINE_VERSION, "suites": {name: measured(name) for name in sorted(FRAMES)}}
    GOLDEN.write_text(json.dumps(written, indent=1) + "\n")
