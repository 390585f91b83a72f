"""Rates corrected by people's labels: their intervals cover the truth where the judge's own do not."""

import numpy as np
import pytest

from benchmarks.coverage.conclusions import drawn
from evalake.core.errors import MetricError
from evalake.metrics.corrected import FEWEST_LABELS, PPIEstimate, ratio
from evalake.metrics.intervals import Array, Integers, wilson

SIMULATIONS = 1000


def proportion(judged: Array, labelled: Integers, human: Array, probability: Array) -> PPIEstimate | None:
    with np.errstate(divide="ignore"):
        return ratio(judged, np.ones(len(judged)), labelled, human, 1 / probability)


@pytest.mark.slow
@pytest.mark.parametrize("informative", [False, True])
@pytest.mark.parametrize(
    ("samples", "labels", "rate", "sensitivity", "specificity"),
    [(2000, 100, 0.4, 0.9, 0.7), (500, 50, 0.7, 0.95, 0.5), (1000, 200, 0.5, 0.6, 0.9)],
)
def test_the_interval_of_a_proportion_covers_where_the_raw_one_fails(
    samples: int, labels: int, rate: float, sensitivity: float, specificity: float, informative: bool
) -> None:
    """A judge that errs more to one side than to the other; labels drawn alike, or rather where it errs."""
    rng = np.random.default_rng(20_250)
    covered = raw = 0
    for _ in range(SIMULATIONS):
        truth = rng.random(samples) < rate
        judged = np.where(truth, rng.random(samples) < sensitivity, rng.random(samples) > specificity)
        doubtful = rng.random(samples) < np.where(truth != judged, 0.6, 0.2)
        weight = np.where(doubtful & informative, 4.0, 1.0)
        chance = np.minimum(1.0, labels * weight / weight.sum())
        chosen = drawn(chance, rng)
        estimate = proportion(judged.astype(float), chosen, truth[chosen].astype(float), chance[chosen])
        assert estimate is not None
        covered += estimate.ci_low <= rate <= estimate.ci_high
        low, high = wilson(judged.sum(), samples)
        raw += bool(low <= rate <= high)
    assert 0.92 <= covered / SIMULATIONS <= 0.98
    assert raw / SIMULATIONS < 0.5


def test_the_interval_of_a_ratio_covers_where_the_raw_one_fails() -> None:
    """Findings of audits: people call 60 % of them valid, the judge three quarters of all."""
    rng = np.random.default_rng(20_251)
    covered = raw = 0
    for _ in range(SIMULATIONS):
        total = rng.integers(1, 7, 800)
        valid = rng.binomial(total, rng.beta(6, 4, 800))
        judged = valid + rng.binomial(total - valid, 0.375)
        chosen = rng.choice(800, 80, replace=False)
        numbers = (values.astype(np.float64) for values in (judged, total, valid[chosen]))
        numerator, denominator, human = numbers
        estimate = ratio(numerator, denominator, chosen, human, np.full(80, 10.0))
        assert estimate is not None
        covered += estimate.ci_low <= 0.6 <= estimate.ci_high
        low, high = wilson(judged.sum(), total.sum())
        raw += bool(low <= 0.6 <= high)
    assert 0.92 <= covered / SIMULATIONS <= 0.98
    assert raw == 0


def test_a_good_judge_makes_the_interval_narrower_and_a_useless_one_does_not_make_it_wider() -> None:
    rng = np.random.default_rng(5)
    truth = (rng.random(5000) < 0.5).astype(float)
    chosen = rng.choice(5000, 200, replace=False)
    chance = np.full(200, 200 / 5000)
    good = np.where(rng.random(5000) < 0.95, truth, 1 - truth)
    noise = (rng.random(5000) < 0.5).astype(float)
    widths = {}
    for name, judged in (("good", good), ("noise", noise), ("none", np.zeros(5000))):
        estimate = proportion(judged, chosen, truth[chosen], chance)
        assert estimate is not None
        widths[name] = estimate.ci_high - estimate.ci_low
    assert widths["good"] < 0.6 * widths["none"]
    assert widths["noise"] < 1.02 * widths["none"]


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 5])
def test_replicates_and_clusters_are_no_more_labels_than_there_are_clusters(size: int) -> None:
    """What is true of a cluster is true of its rows: rows as units cover 48 to 79 %."""
    rng = np.random.default_rng(20_253)
    held = 0
    for _ in range(400):
        truth = np.repeat(rng.random(200) < 0.6, size)
        judged = np.repeat(rng.random(200) < 0.15, size) ^ truth
        cluster = np.repeat(np.arange(200), size)
        chosen = np.flatnonzero(np.isin(cluster, rng.choice(200, 50, replace=False)))
        numbers = judged.astype(float), np.ones(len(truth)), chosen, truth[chosen].astype(float)
        estimate = ratio(*numbers, np.full(len(chosen), 4.0), cluster)
        assert estimate is not None
        assert (estimate.labels, estimate.units) == (50 * size, 50)
        held += estimate.ci_low <= 0.6 <= estimate.ci_high
    assert held / 400 >= 0.93


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "labels"), [(0.5, 50), (0.8, 30), (0.7, 100), (0.98, 20), (0.03, 60)])
@pytest.mark.parametrize("right", [0.5, 0.95])
def test_a_correction_is_never_wider_than_the_labels_alone_by_more_than_5_percent(
    rate: float, labels: int, right: float
) -> None:
    rng = np.random.default_rng(20_254)
    wider, held = [], 0
    for _ in range(600):
        truth = rng.random(600) < rate
        judged = truth ^ (rng.random(600) > right)
        chosen = rng.choice(600, labels, replace=False)
        human = truth[chosen].astype(float)
        estimate = proportion(judged.astype(float), chosen, human, np.full(labels, labels / 600))
        assert estimate is not None
        low, high = wilson(human.sum(), labels)
        wider.append(estimate.width / float(high - low))
        held += estimate.ci_low <= rate <= estimate.ci_high
    assert max(wider) <= 1.05 + 1e-9
    assert held / 600 >= 0.92


@pytest.mark.slow
def test_near_1_few_labels_err_wide_and_are_marked() -> None:
    """A rate of .98 and 20 labels: a correction covers 86 to 91 %."""
    rng = np.random.default_rng(20_255)
    held = marked = 0
    for _ in range(500):
        truth = rng.random(500) < 0.98
        judged = truth ^ (rng.random(500) > 0.9)
        chosen = rng.choice(500, 20, replace=False)
        estimate = proportion(judged.astype(float), chosen, truth[chosen].astype(float), np.full(20, 0.04))
        assert estimate is not None
        held += estimate.ci_low <= 0.98 <= estimate.ci_high
        marked += estimate.marked
    assert held / 500 >= 0.95
    assert marked == 500


def test_labels_on_everything_are_the_truth() -> None:
    truth = np.array([1.0, 0, 1, 1, 0, 1, 0, 0, 1, 1])
    estimate = proportion(1 - truth, np.arange(10), truth, np.ones(10))
    assert estimate is not None
    assert estimate.value == pytest.approx(0.6)
    assert estimate.se == pytest.approx(np.sqrt(0.6 * 0.4 / 9))


def test_labels_that_all_agree_do_not_make_the_judge_certain() -> None:
    judged = np.ones(1000)
    estimate = proportion(judged, np.arange(10), np.ones(10), np.full(10, 0.01))
    assert estimate is not None
    assert estimate.value == 1.0
    assert estimate.ci_low < 0.9


def test_labels_on_everything_that_all_agree_leave_room_for_other_samples() -> None:
    estimate = proportion(np.ones(20), np.arange(20), np.ones(20), np.ones(20))
    assert estimate is not None
    assert (estimate.value, estimate.ci_high) == (1.0, 1.0)
    assert 0.8 < estimate.ci_low < 0.9


@pytest.mark.parametrize("rate", [0.05, 0.95])
def test_few_labels_of_what_is_rare_leave_room_for_what_they_do_not_show(rate: float) -> None:
    rng = np.random.default_rng(20_252)
    covered = 0
    for _ in range(400):
        truth = rng.random(500) < rate
        judged = np.where(truth, rng.random(500) < 0.9, rng.random(500) > 0.7)
        chosen = rng.choice(500, 50, replace=False)
        estimate = proportion(judged.astype(float), chosen, truth[chosen].astype(float), np.full(50, 0.1))
        assert estimate is not None
        covered += estimate.ci_low <= rate <= estimate.ci_high
    assert covered / 400 >= 0.92


def test_too_few_labels_are_no_estimate() -> None:
    few = FEWEST_LABELS - 1
    assert proportion(np.ones(100), np.arange(few), np.ones(few), np.full(few, 0.1)) is None
    assert ratio(np.zeros(9), np.zeros(9), np.arange(6), np.zeros(6), np.ones(6)) is None


@pytest.mark.parametrize(
    ("labelled", "human", "chance", "named"),
    [
        ([0, 0, 1, 2, 3], [1.0] * 5, [0.5] * 5, "twice"),
        ([0, 1, 2, 3, 4], [1.0] * 4, [0.5] * 5, "equally many"),
        ([0, 1, 2, 3, 4], [1.0] * 5, [0.0] * 5, "weight"),
        ([0, 1, 2, 3, 4], [np.nan] * 5, [0.5] * 5, "missing"),
    ],
)
def test_what_does_not_fit_together_is_refused(labelled: list[int], human: Array, chance: Array, named: str) -> None:
    with pytest.raises(MetricError, match=named):
        proportion(np.ones(10), np.array(labelled), np.array(human), np.array(chance))
