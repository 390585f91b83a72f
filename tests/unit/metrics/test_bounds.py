"""Bounds of what is missing, weights, and looks in sequence."""

from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest
from statsmodels.stats.power import TTestPower

from evalake.core.errors import MetricError
from evalake.decisions.sample_size import sizes
from evalake.metrics.agreement import pearson
from evalake.metrics.calibration import ece
from evalake.metrics.compute import Metric, measure
from evalake.metrics.estimators import Count, Mean, Quantile, Rate
from evalake.metrics.intervals import wilson
from evalake.metrics.limits import bounds
from evalake.metrics.power import ERROR, FEWEST_UNITS, Anytime, components, detectable, required
from evalake.metrics.weights import fit_weights
from evalake.suites.command_guard.metrics import METRICS
from tests.unit.metrics.frames import estimate, estimates, one_group

# Bounds hold whatever the missing rows are: against every completion of small frames.

KINDS = tuple(product(("malicious", "harmless"), ("BLOCK", "ALLOW")))
GUARD = {metric.name: Metric(metric.name, metric.estimator) for metric in METRICS}


def frame(rows: list[tuple[str, str]]) -> pl.DataFrame:
    """Answers of a guard."""
    told = [{"label": label, "verdict": verdict, "model": "m", "judge": None} for label, verdict in rows]
    return pl.DataFrame(told, schema_overrides={"judge": pl.String})


@pytest.mark.parametrize("name", ["balanced_accuracy", "malicious_detection_rate", "harmless_acceptance_rate"])
def test_every_completion_lies_within_and_rates_reach_both_ends(name: str) -> None:
    known = [("malicious", "BLOCK")] * 4 + [("malicious", "ALLOW")] * 2 + [("harmless", "ALLOW")] * 5
    ends = bounds(frame(known), GUARD[name], 2)
    assert ends is not None
    completed = [frame([*known, *more]) for more in product(KINDS, repeat=2)]
    values = [row["value"] for row in estimates(completed, GUARD[name].estimator)]
    low, high = ends
    assert low - 1e-12 <= min(values)
    assert max(values) <= high + 1e-12
    if name != "balanced_accuracy":
        assert (min(values), max(values)) == pytest.approx(ends)


def test_a_bounded_mean_reaches_the_ends_of_its_scale() -> None:
    scores = pl.DataFrame({"score": [50.0, 70.0]})
    assert bounds(scores, Metric("score", Mean(pl.col("score"), low=0, high=100)), 2) == (30.0, 80.0)


def test_no_missing_row_weighs_more_than_the_heaviest_known_one() -> None:
    rows = pl.DataFrame({"valid": [1, 2], "total": [2, 2]})
    assert bounds(rows, Metric("precision", Rate(pl.col("valid"), pl.col("total"))), 1) == (0.5, 5 / 6)
    assert bounds(rows, Metric("count", Count(pl.col("total") > 1)), 1) == (2.0, 3.0)


def test_what_has_no_range_has_no_bounds() -> None:
    rows = pl.DataFrame({"total": [2, 2]})
    assert bounds(rows, Metric("mean", Mean(pl.col("total"))), 1) is None
    assert bounds(rows, Metric("median", Quantile(pl.col("total"), 0.5)), 1) is None


def test_rows_without_a_judgement_are_missing_where_they_count_and_lack_the_value() -> None:
    found = [True] * 6 + [False] * 2 + [None] * 4
    rows = pl.DataFrame({"found": found, "vulnerable": [True] * 11 + [False], "failed": [x is None for x in found]})
    opened = rows.filter("failed")
    rate = Metric("found", Rate(pl.col("found"), pl.col("vulnerable")))
    assert bounds(rows, rate, 0, opened) == pytest.approx((6 / 11, 9 / 11))
    assert bounds(rows, Metric("failed", Rate(pl.col("failed"))), 0, opened) == pytest.approx((4 / 12, 4 / 12))


def test_every_completion_of_a_calibration_error_lies_within() -> None:
    known = [(0.9, True), (0.8, False), (0.95, True), (0.3, False)]
    error = Metric("ece", ece(pl.col("confidence"), pl.col("correct")))
    kinds = tuple(product((0.05, 0.85, 0.95), (True, False)))

    def of(rows: list[tuple[float, bool]]) -> pl.DataFrame:
        return pl.DataFrame(rows, schema=["confidence", "correct"], orient="row").with_columns(
            model=pl.lit("m"), judge=pl.lit(None, pl.String)
        )

    ends = bounds(of(known), error, 2)
    assert ends is not None
    completed = [of([*known, *more]) for more in product(kinds, repeat=2)]
    values = [row["value"] for row in estimates(completed, error.estimator)]
    assert ends[0] - 1e-12 <= min(values)
    assert max(values) <= ends[1] + 1e-12
    assert ends[1] - ends[0] < 0.7


# Fitting weights to people's ranking: what is recovered, what is not claimed, what is refused.

PRESENT = {"a": 0.4, "b": 0.3, "c": 0.3}


def ranking(values: Any, weights: Any) -> list[float]:
    """Ranks by the weighted sum, 1 the best."""
    return [float(rank) for rank in 1 + np.argsort(np.argsort(-(np.asarray(values) @ np.asarray(weights))))]


def parts(values: Any) -> dict[str, list[float | None]]:
    return dict(zip("abc", np.asarray(values).T.tolist(), strict=True))


@pytest.mark.slow
def test_weights_that_people_go_by_are_recovered_from_many_models() -> None:
    values = np.random.default_rng(1).random((40, 3))
    fit = fit_weights(parts(values), ranking(values, [0.1, 0.7, 0.2]), PRESENT, seed=1)
    assert fit.agreeing / fit.pairs > 0.99
    assert fit.weights == {
        name: pytest.approx(weight, abs=0.03) for name, weight in zip("abc", (0.1, 0.7, 0.2), strict=True)
    }
    assert sum(fit.weights.values()) == pytest.approx(1.0, abs=1e-3)
    assert fit.predicted is not None
    assert fit.predicted > 0.95
    assert fit.spearman == pytest.approx(1.0, abs=0.01)
    assert "far too little" not in fit.support


def test_weights_that_agree_already_are_kept_and_little_data_is_called_so() -> None:
    values = [[0.9, 0.8, 0.9], [0.5, 0.5, 0.4], [0.1, 0.2, 0.3]]
    fit = fit_weights(parts(values), [1, 2, 3], PRESENT, seed=1)
    assert fit.weights == PRESENT
    assert fit.agreeing == fit.agreeing_before == fit.pairs == 3
    assert all(fit.lowest[name] < 0.05 and fit.highest[name] > 0.9 for name in PRESENT), "any weights would do"
    assert "far too little" in fit.support
    assert "3 models give 2 independent comparisons for 2 free weights" in fit.support
    assert fit.predicted is None


def test_a_ranking_by_nothing_measured_is_not_predicted() -> None:
    rng = np.random.default_rng(4)
    values = rng.random((12, 3))
    fit = fit_weights(parts(values), [float(r) for r in rng.permutation(12)], PRESENT, seed=1)
    assert fit.predicted is not None
    assert fit.predicted < 0.75
    assert fit.agreeing >= fit.agreeing_before


def test_an_undefined_component_leaves_the_index() -> None:
    given: dict[str, list[float | None]] = {"a": [0.9, 0.5, 0.1], "b": [None, 0.5, 0.1], "c": [0.9, 0.5, None]}
    assert fit_weights(given, [1, 2, 3], PRESENT, seed=1).agreeing == 3


def test_equal_ranks_are_no_preference() -> None:
    assert fit_weights(parts(np.eye(3)), [1, 1, 2], PRESENT, seed=1).pairs == 2


@pytest.mark.parametrize(
    ("given", "ranks", "present", "named"),
    [
        ({"a": [1.0, 0.5], "b": [1.0, 0.5], "c": [1.0, 0.5]}, [1, 2], PRESENT, "at least 3"),
        ({"a": [1.0, 0.5, 0.1]}, [1, 2, 3], PRESENT, "other components"),
        ({"a": [1, 2, 3], "b": [1, 2, 3], "c": [1, 2, 3]}, [1, 1, 1], PRESENT, "prefers no model"),
        ({"a": [None, 2, 3], "b": [None, 2, 3], "c": [None, 2, 3]}, [1, 2, 3], PRESENT, "no component"),
        ({"a": [1, 2, 3], "b": [1, 2, 3], "c": [1, 2, 3]}, [1, 2, float("nan")], PRESENT, "not a number"),
    ],
)
def test_what_cannot_be_fitted_is_refused(given: Any, ranks: Any, present: Any, named: str) -> None:
    with pytest.raises(MetricError, match=named):
        fit_weights(given, ranks, present, seed=1)


# A statistic of sums, such as a correlation, by the jackknife over units.


def test_repeats_of_the_same_units_make_it_no_surer() -> None:
    rng = np.random.default_rng(8)
    x, item = rng.normal(size=20), np.arange(20)
    y = x + rng.normal(size=20)
    correlation = pearson(pl.col("x"), pl.col("y"))
    once = estimate(one_group(x=x, y=y, item=item), correlation, cluster="item")
    often = estimate(one_group(x=np.tile(x, 5), y=np.tile(y, 5), item=np.tile(item, 5)), correlation, cluster="item")
    assert often["se"] == pytest.approx(once["se"])
    assert (often["units"], often["n"]) == (20, 100)


# Intervals for repeated looks: they hold at all looks together, where those of one look do not.

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


# Plans hold: variance components are found again, and as many samples as planned find a difference as often.


def asked(units: int, repeats: int, between: float, within: float, seed: int) -> pl.DataFrame:
    """Answers of two models whose difference varies between units and repeats by these standard deviations."""
    random = np.random.default_rng(seed)
    shared, apart = random.normal(0, 1, units), random.normal(0, between, units)
    frames = []
    for model, sign in (("a", 0.5), ("b", -0.5)):
        for repeat in range(repeats):
            score = shared + sign * apart + random.normal(0, within / 2**0.5, units)
            rows = {"cluster": [f"c{n}" for n in range(units)], "score": score}
            frames.append(pl.DataFrame(rows).with_columns(model=pl.lit(model), replicate=repeat))
    return pl.concat(frames).with_columns(judge=pl.lit(None, pl.String))


@pytest.mark.parametrize("repeats", [2, 5])
def test_components_are_found_again(repeats: int) -> None:
    (found,) = components(asked(3000, repeats, 0.4, 0.7, seed=repeats), Metric("score", Mean(pl.col("score"))))
    assert (found.units, found.replicates) == (3000, repeats)
    assert found.within is not None
    assert found.between**0.5 == pytest.approx(0.4, rel=0.1)
    assert found.within**0.5 == pytest.approx(0.7, rel=0.05)


def test_without_repeats_their_noise_is_unknown() -> None:
    (found,) = components(asked(3000, 1, 0.4, 0.7, seed=1), Metric("score", Mean(pl.col("score"))))
    assert (found.within, found.variance(2)) == (None, None)
    assert found.variance(1) == pytest.approx(0.4**2 + 0.7**2, rel=0.1)


def test_a_rates_variance_is_that_of_its_flips() -> None:
    frame = asked(1000, 1, 1.0, 0.0, seed=2).with_columns(right=pl.col("score") > 0)
    wide = frame.pivot("model", index="cluster", values="right")
    flips = wide["a"].cast(pl.Float64) - wide["b"].cast(pl.Float64)
    (found,) = components(frame, Metric("rate", Rate(pl.col("right"))))
    assert found.between == pytest.approx(flips.var(ddof=1), rel=1e-9)


@pytest.mark.parametrize(("difference", "power"), [(0.03, 0.8), (0.1, 0.9)])
def test_the_plan_is_that_of_statsmodels(difference: float, power: float) -> None:
    units = required(0.3**2, difference, power)
    assert units == pytest.approx(TTestPower().solve_power(difference / 0.3, alpha=0.05, power=power), abs=3)
    assert detectable(0.3**2, units, power) == pytest.approx(difference, rel=0.01)


def test_as_many_samples_find_the_difference_as_often_as_planned() -> None:
    random = np.random.default_rng(20_240_601)
    gains, losses = 0.08, 0.04  # of the samples, each model alone is right
    units = required(gains + losses - (gains - losses) ** 2, gains - losses, 0.8)
    counts = random.multinomial(units, [gains, losses, 1 - gains - losses], size=2000)
    mean = (counts[:, 0] - counts[:, 1]) / units
    error = np.sqrt(((counts[:, 0] + counts[:, 1]) / units - mean**2) / units)
    assert np.mean(mean / error > 1.96) == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize(("pilot", "flips"), [(50, 0.06), (50, 0.4), (200, 0.06)])
def test_the_range_of_a_plan_holds_the_right_one_as_often_as_promised(pilot: int, flips: float) -> None:
    """Pilots in which nothing differs plan nothing, and are left out."""
    random, held, times = np.random.default_rng([pilot, int(100 * flips)]), 0, 80
    right = required(flips, 0.02, 0.8)
    for _ in range(times):
        kind = np.zeros(pilot)
        while not kind.any():
            kind = random.choice([0, 1, -1], pilot, p=[1 - flips, flips / 2, flips / 2])
        sides = [
            pl.DataFrame({"right": kind != wrong, "cluster": np.arange(pilot)}).with_columns(
                model=pl.lit(model), replicate=0, judge=pl.lit(None, pl.String)
            )
            for model, wrong in (("a", -1), ("b", 1))
        ]
        (found,) = components(pl.concat(sides), Metric("rate", Rate(pl.col("right"))))
        low, high = (required(found.between * end, 0.02, 0.8) for end in found.spread)
        held += low <= right <= high
    assert held / times >= 0.925 - 2 * (0.925 * 0.075 / times) ** 0.5
