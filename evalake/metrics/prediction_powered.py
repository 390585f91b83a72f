"""Prediction-powered inference: what people would have said of everything, from few labels and a judge's word on all.

A judge's rate is biased by its mistakes, and its interval says nothing of that: with enough samples it is narrowly
wrong. People's labels alone are right and wide. Together (Angelopoulos and others 2023, Science 382): the judge's mean
over all samples, corrected by its mean error on the labelled ones. The judge's word is weighed by how well it predicts
people's (power tuning, Angelopoulos, Duchi and Zrnic 2023), so a useless judge does no harm.

Labelled samples are a part of the judged ones, drawn with known probabilities that need not be equal: errors are
averaged with the inverse probabilities as weights (Hájek 1971), and the variance is that of two phases of sampling
(Särndal, Swensson and Wretman 1992, chapter 9): the samples themselves, and the choice of whom to label. The interval
is Wilson's at that variance, which keeps to its 95 % near 0 and 1. Two unseen labels, off by one to either side, count
in it, the more the nearer to 0 or 1: few labels seldom show how a judge errs in what is rare.
"""

from dataclasses import dataclass

import numpy as np

from evalake.core.errors import MetricError
from evalake.metrics.estimator import LEAST_WEIGHT
from evalake.metrics.intervals import Array, Integers, student, wilson

FEWEST_LABELS = 5


@dataclass(frozen=True, slots=True)
class PPIEstimate:
    """A corrected estimate: its value, standard error, 95 % interval and the labels it rests on."""

    value: float
    se: float
    ci_low: float
    ci_high: float
    labels: int


def ratio(numerator: Array, denominator: Array, labelled: Integers, human: Array, weight: Array) -> PPIEstimate | None:
    """Estimate the ratio of two sums over samples, between 0 and 1, whose true numerators are people's.

    Args:
        numerator: By sample: the judge's numerators (such as its valid findings).
        denominator: By sample: the denominators, which nobody disputes (such as all findings); all 1 for a proportion.
        labelled: By label: the number of the sample that it is of, without repetition.
        human: By label: people's numerators.
        weight: By label: what the sample stands for, such as one over the probability with which it was drawn.

    Returns:
        The estimate; None with fewer than 5 labels.

    Raises:
        MetricError: The arrays do not fit together.
    """
    f, d, y = (np.asarray(values, np.float64) for values in (numerator, denominator, human))
    weight = np.asarray(weight, np.float64)
    _require_fit(f, d, labelled, y, weight)
    size, n = len(f), len(y)
    if n < FEWEST_LABELS or d.sum() <= 0:
        return None
    share = weight / weight.sum()
    judge, scale = f[labelled], d.mean()
    tuned = _judge_weight(judge, y, share)
    error = y - tuned * judge
    bias = float(share @ error)
    value = (tuned * f.mean() + bias) / scale

    # As if one label at least had disagreed by one: no disagreement among few labels does not show that there is none.
    spread = float(((share * (error - bias)) ** 2).sum()) * n / (n - 1)
    spread = max(spread, float((share**2).sum()) / (n + 2))
    residual = y - value * d[labelled]
    centre = float(share @ residual)
    between = float(share @ (residual - centre) ** 2) * n / (n - 1)
    variance = (between / size + spread * max(0.0, 1 - n / size)) / scale**2
    kept = float(np.clip(value, 0.0, 1.0))
    weight_of_unseen = max(LEAST_WEIGHT, abs(1 - 2 * kept))
    unseen = weight_of_unseen * float((share**2).mean()) * ((scale - bias) ** 2 + (scale + bias) ** 2) * n / (n - 1)
    wider = variance + unseen * max(0.0, 1 - n / size) / scale**2
    low, high = _limits(kept, wider, n, float(d.sum()))
    return PPIEstimate(kept, float(np.sqrt(variance)), low, high, n)


def _limits(value: float, variance: float, labels: int, most: float) -> tuple[float, float]:
    """Compute Wilson's limits for the trials, `most` at most, with that variance, and Student's quantile of labels."""
    least = 1 / (labels + 2)
    inside = min(max(value, least), 1 - least)
    trials = inside * (1 - inside) / max(variance, inside * (1 - inside) / most)
    low, high = wilson(value * trials, trials, student(labels))
    return min(float(low), value), max(float(high), value)


def _judge_weight(judge: Array, human: Array, share: Array) -> float:
    """Compute the slope of people's word on the judge's, between 0 (ignore the judge) and 1 (take its word)."""
    deviation = judge - share @ judge
    variance = float(share @ deviation**2)
    if variance <= 0:
        return 1.0
    return float(np.clip(share @ (deviation * (human - share @ human)) / variance, 0.0, 1.0))


def _require_fit(f: Array, d: Array, labelled: Integers, y: Array, weight: Array) -> None:
    if len(f) != len(d) or not len(labelled) == len(y) == len(weight):
        raise MetricError("numerators and denominators, and labels and their weights, must be equally many")
    if len(np.unique(labelled)) != len(labelled):
        raise MetricError("a sample is labelled twice: make people's words on a sample one")
    if not all(np.isfinite(values).all() for values in (f, d, y)):
        raise MetricError("a judged or labelled value is missing or infinite")
    if not ((weight > 0) & np.isfinite(weight)).all():
        raise MetricError("the weight of a label must be above 0 and finite")
