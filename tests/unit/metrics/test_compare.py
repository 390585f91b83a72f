"""Comparisons: values against scipy and statsmodels, and what seeded simulations say of errors of both kinds."""

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats
from scipy.stats import permutation_test
from statsmodels.stats.contingency_tables import mcnemar as reference_mcnemar
from statsmodels.stats.multitest import multipletests

from evalake.metrics.compare import COMPARED, compare, holm, mcnemar, with_holm
from evalake.metrics.composite import Composite, MacroAverage
from evalake.metrics.compute import Metric
from evalake.metrics.estimators import Count, Mean, Quantile, Rate, Ratio
from evalake.metrics.intervals import Array
from tests.unit.metrics.guard import GUARD_METRICS

ACCURACY = Metric("accuracy", Rate(pl.col("right")))


def answers(right: Any, samples: Any = None, **columns: Any) -> pl.DataFrame:
    """Answers of one side, one a sample unless `samples` says of which each is."""
    own = range(len(right)) if samples is None else samples
    named = pl.DataFrame({"right": right, "sample": [f"s{sample}" for sample in own], **columns})
    return named.with_columns(cluster=pl.col("sample"), judge=pl.lit(None, pl.String))


def one(a: pl.DataFrame, b: pl.DataFrame, metric: Metric = ACCURACY, **options: Any) -> dict[str, Any]:
    """The single row of a comparison in one metric."""
    (row,) = compare(a, b, [metric], cluster="cluster", pair="sample", **options).to_dicts()
    return row


def of_runs(runs: Iterable[Sequence[pl.DataFrame]], metrics: Sequence[Metric] = (ACCURACY,), **options: Any) -> Any:
    """The comparison of the two sides of each run, all made at once: each run is a judge."""
    of_judges = ([side.with_columns(judge=pl.lit(f"{number:03}")) for side in run] for number, run in enumerate(runs))
    a, b = (pl.concat(side) for side in zip(*of_judges, strict=True))
    return compare(a, b, metrics, cluster="cluster", pair="sample", **options)


def test_one_answer_a_unit_is_mcnemars_test() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.random(200) < 0.8, rng.random(200) < 0.6
    row = one(answers(a), answers(b))
    gains, losses = int((a & ~b).sum()), int((~a & b).sum())
    assert (row["flips_to_a"], row["flips_to_b"], row["units"]) == (gains, losses, 200)
    exact = reference_mcnemar([[0, gains], [losses, 0]], exact=True).pvalue
    assert row["p"] == pytest.approx(exact - stats.binom.pmf(min(gains, losses), gains + losses, 0.5))
    assert row["difference"] == pytest.approx(a.mean() - b.mean())
    assert row["ci_low"] < row["difference"] < row["ci_high"]
    assert mcnemar(0, 0) == mcnemar(3, 3) == 1


@pytest.mark.parametrize("units", [50, 500])
def test_mid_p_keeps_its_level_and_gives_back_the_power_that_the_exact_test_loses(units: int) -> None:
    """Of the units, 14 % differ: without a difference, and with 10 % against 4 %."""
    random = np.random.default_rng(units)

    def called(gain: float, loss: float) -> tuple[float, float]:
        flips = random.multinomial(units, [gain, loss, 1 - gain - loss], 2000)[:, :2]
        exact = [min(1.0, 2 * stats.binom.cdf(min(pair), sum(pair), 0.5)) < 0.05 for pair in flips]
        return float(np.mean([mcnemar(int(a), int(b)) < 0.05 for a, b in flips])), float(np.mean(exact))

    assert called(0.07, 0.07)[0] <= 1.1 * 0.05 + 2 * (0.05 * 0.95 / 2000) ** 0.5
    found, found_exactly = called(0.10, 0.04)
    assert found > found_exactly + (0.04 if units < 500 else 0.0)


def test_a_means_p_is_scipys_permutation_test() -> None:
    rng = np.random.default_rng(2)
    a = rng.random(10)
    b = np.clip(a - rng.normal(0.05, 0.1, 10), 0, 1)
    row = one(answers(a), answers(b), Metric("score", Mean(pl.col("right"), low=0, high=1)))
    expected = permutation_test((a, b), lambda x, y: np.mean(x) - np.mean(y), permutation_type="samples")
    assert row["p"] == pytest.approx(expected.pvalue)
    assert row["flips_to_a"] is None


def test_many_units_are_drawn_at_random_and_the_same_each_time() -> None:
    rng = np.random.default_rng(3)
    a = rng.random(60)
    b = np.clip(a - rng.normal(0.04, 0.15, 60), 0, 1)
    metric = Metric("score", Mean(pl.col("right"), low=0, high=1))
    row = one(answers(a), answers(b), metric)
    expected = permutation_test(
        (a, b), lambda x, y, axis: np.mean(x - y, axis=axis), permutation_type="samples", vectorized=True, rng=4
    )
    assert row["p"] == pytest.approx(expected.pvalue, abs=0.02)
    assert row == one(answers(a)[::-1], answers(b)[::-1], metric)


def mean_of_two(parts: Any) -> Array:
    return (parts["even"] + parts["odd"]) / 2  # type: ignore[no-any-return]


EVEN, ODD = (Rate(pl.col("right"), pl.col("odd") == each) for each in (0, 1))
BALANCED = Metric("balanced", Composite(mean_of_two, {"even": EVEN, "odd": ODD}))
MACRO = Metric("macro", MacroAverage(pl.col("right"), pl.lit(True), pl.col("odd")))


@pytest.mark.parametrize("metric", [ACCURACY, BALANCED, MACRO], ids=lambda metric: metric.name)
def test_the_same_answers_five_times_are_no_new_evidence(metric: Metric) -> None:
    rng = np.random.default_rng(5)
    odd = np.arange(40) % 2
    a, b = answers(rng.random(40) < 0.8, odd=odd), answers(rng.random(40) < 0.5, odd=odd)
    once, often = one(a, b, metric), one(pl.concat([a] * 5), pl.concat([b] * 5), metric)
    assert all(often[name] == once[name] for name in ("p", "units", "flips_to_a"))
    assert often["ci_high"] - often["ci_low"] > 0.8 * (once["ci_high"] - once["ci_low"])


OF_REPEATS = Metric("of repeats", Mean(pl.col("right").mean().over("sample"), low=0, high=1))


@pytest.mark.parametrize("metric", [ACCURACY, OF_REPEATS], ids=lambda metric: metric.name)
def test_only_samples_of_both_sides_count_and_windows_end_with_their_side(metric: Metric) -> None:
    row = one(answers([True, True, False], [1, 2, 3]), answers([False, True], [2, 9]), metric)
    assert (row["units"], row["value_a"], row["value_b"]) == (1, 1, 0)


def test_identical_sides_differ_by_nothing_give_or_take_something() -> None:
    right = [True, False] * 20
    row = one(answers(right), answers(right))
    assert (row["difference"], row["p"], row["flips_to_a"], row["flips_to_b"]) == (0, 1, 0, 0)
    assert row["ci_low"] < 0 < row["ci_high"]
    perfect = one(answers([True] * 40), answers([False] * 40))
    assert perfect["difference"] == perfect["ci_high"] == 1
    assert -1 < perfect["ci_low"] < 1


def test_twins_that_cancel_leave_the_interval_as_narrow_as_the_differences_of_their_pairs() -> None:
    pairs = np.repeat(np.arange(60), 2)
    constant = answers(np.arange(120) % 2 == 0).with_columns(cluster=pl.Series(pairs).cast(pl.String))
    right = constant["right"].to_list()
    right[1:40:2] = [True] * 20  # the twin that is answered wrongly by saying the same of both, now right
    row = one(constant.with_columns(right=pl.Series(right)), constant)
    assert (row["flips_to_a"], row["flips_to_b"]) == (20, 0)
    assert row["difference"] == pytest.approx(1 / 6)
    assert row["ci_low"] == pytest.approx(1 / 6 - 0.07, abs=0.015)
    assert row["ci_high"] == pytest.approx(1 / 6 + 0.07, abs=0.015)


SCORE = Metric("score", Mean(pl.col("score"), low=0, high=1))
RATIO = Metric("ratio", Ratio(pl.col("score") * pl.col("weight"), pl.col("weight")))


@pytest.mark.slow
@pytest.mark.parametrize("units", [4, 9, 20, 60])
@pytest.mark.parametrize("rows", [1, 2, 5])
def test_the_interval_leaves_out_0_exactly_where_p_is_below_5_percent(units: int, rows: int) -> None:
    rng = np.random.default_rng([units, rows])
    size = units * rows
    cluster = pl.Series(np.repeat(np.arange(units), rows)).cast(pl.String)
    shared = {"odd": np.arange(size) % 2, "weight": rng.integers(1, 4, size)}
    runs = []
    for rate, gain in product((0.02, 0.5, 0.98), (0.0, 0.3, 0.6)):
        second = rng.random(size) < rate
        if rows == 2:
            second[1::2] = ~second[::2]  # twins that cancel
        first = np.where(rng.random(size) < gain, True, np.where(rng.random(size) < 0.8, second, ~second))
        sides = (answers(right, score=rng.random(size) / 2 + right / 2, **shared) for right in (first, second))
        runs.append([side.with_columns(cluster=cluster) for side in sides])
    compared = of_runs(runs, [ACCURACY, SCORE, RATIO, BALANCED, MACRO], draws=500)
    assert compared["judge"].n_unique() == len(runs)
    for row in compared.iter_rows(named=True):
        assert (row["ci_low"] > 0 or row["ci_high"] < 0) == (row["p"] < 0.05), row
        assert -1 <= row["ci_low"] <= row["difference"] <= row["ci_high"] <= 1, row
        assert row["ci_low"] < row["ci_high"], row


def test_counts_have_no_test_and_quantiles_no_p() -> None:
    a, b = answers([True] * 30, ms=np.arange(30.0)), answers([True] * 30, ms=np.arange(30.0) + 5)
    count = one(a, b, Metric("rights", Count(pl.col("right"))))
    assert (count["ci_low"], count["p"], count["flips_to_a"]) == (None, None, None)
    median = one(a, b, Metric("p50", Quantile(pl.col("ms"), 0.5)))
    assert (median["difference"], median["p"]) == (-5, None)


def test_every_metric_of_a_suite_is_compared_in_every_slice_judge_by_judge() -> None:
    rng = np.random.default_rng(6)
    base = pl.DataFrame({
        "sample": [f"s{i}" for i in range(60)] * 2, "judge": ["j"] * 60 + ["k"] * 60,
        "label": (["malicious"] * 30 + ["harmless"] * 30) * 2,
        "category": (["x"] * 15 + ["y"] * 15 + [None] * 30) * 2,
        "dataset": ["d"] * 120, "latency_ms": rng.random(120), "cost_usd": rng.random(120),
    }).with_columns(cluster=pl.col("sample"))  # fmt: skip
    a, b = (base.with_columns(verdict=pl.Series(rng.choice(["ALLOW", "WARN", "BLOCK"], 120))) for _ in range(2))
    rows = compare(a, b, GUARD_METRICS, cluster="cluster", pair="sample", draws=500)
    assert rows.columns == list(COMPARED)
    assert rows.select("judge", "metric", "slice", "slice_value").is_unique().all()
    of = rows.filter(judge="j", metric="malicious_detection_rate")
    assert of.select("slice", "slice_value", "units").rows() == [
        ("all", "", 30), ("category", "x", 15), ("category", "y", 15), ("dataset", "d", 30),
    ]  # fmt: skip


def test_a_slice_of_which_nothing_is_known_is_no_row() -> None:
    both = Composite(
        lambda parts: (parts["a"] + parts["b"]) / 2, {"a": Rate(pl.col("right")), "b": Rate(pl.col("right"))}
    )
    metric = Metric("both", both, slices=("all", "difficulty"))
    right, wrong = (
        answers([True, False, last], difficulty=pl.Series([None] * 3, dtype=pl.String)) for last in (True, False)
    )
    assert compare(right, wrong, [metric], cluster="cluster", pair="sample")["slice"].to_list() == ["all"]


def test_no_shared_sample_is_no_row() -> None:
    assert compare(answers([True], [1]), answers([True], [2]), [ACCURACY], cluster="cluster", pair="sample").is_empty()


def test_holm_is_over_the_rows_that_have_a_p() -> None:
    p_values = [0.01, None, 0.04, 0.03]
    adjusted = with_holm(pl.DataFrame({"p": p_values, "units": [1] * 4}))
    assert adjusted.columns == ["p", "p_holm", "units"]
    known = multipletests([0.01, 0.04, 0.03], method="holm")[1].tolist()
    assert adjusted["p_holm"].to_list() == pytest.approx([known[0], None, *known[1:]])
    assert holm([]) == []


def simulated(rng: np.random.Generator, n: int, gain: float, replicates: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Two models on samples of differing difficulty, the first better by `gain`; their repeats hang together."""
    hard = rng.beta(0.8, 0.2, n)
    samples = np.repeat(np.arange(n), replicates)

    def side(shift: float) -> pl.DataFrame:
        leaning = np.clip(hard + rng.normal(0, 0.15, n), 0, 1)
        return answers(rng.random(len(samples)) < np.clip(leaning + shift, 0, 1)[samples], samples)

    return side(gain), side(0.0)


@pytest.mark.slow
def test_four_points_at_500_samples_are_found() -> None:
    rng = np.random.default_rng(8)
    runs = []
    for _ in range(200):
        a = rng.random(500) < 0.86
        b = a ^ (rng.random(500) < np.where(a, 0.08, 0.08 * 0.86 / 0.14 - 0.04 / 0.14))
        runs.append((answers(a), answers(b)))
    rows = of_runs(runs)
    assert rows.drop_nulls("p").height == 200
    assert (rows["p"] < 0.05).mean() >= 0.8


@pytest.mark.parametrize(("first", "second"), [(0.3, 0.3), (0.5, 0.5), (0.5, 1.0), (0.1, 1.0), (0.75, 1.5)])
def test_amounts_of_one_mean_are_rarely_called_different_and_unequal_shapes_claim_nothing(
    first: float, second: float
) -> None:
    """Log-normal amounts of mean 1; exchanges alone err in up to 14 %."""
    random, samples, times = np.random.default_rng(int(10 * first + 100 * second)), 50, 200

    def side(spread: float) -> pl.DataFrame:
        cost = np.exp(spread * random.standard_normal(samples) - spread**2 / 2)
        return answers([True] * samples, cost=cost)

    runs = [(side(first), side(second)) for _ in range(times)]
    rows = of_runs(runs, [Metric("cost", Mean(pl.col("cost"), low=0))], draws=400)
    assert rows.height == times
    called, doubted = (rows["p"] < 0.05).sum(), rows.drop_nulls("mark")
    assert doubted.filter(pl.col("p").is_not_null() | (pl.col("ci_low") > 0) | (pl.col("ci_high") < 0)).is_empty()
    marked = doubted.height
    assert called <= 1.1 * 0.05 * times + 2 * (0.05 * 0.95 * times) ** 0.5
    assert marked == 0 if max(first, second) == 0.3 else True
    assert marked > 0.9 * times if second >= 2 * first else True
