"""Rates of a judge, corrected for its errors: by a calibration that knows them, or by people's labels.

By a calibration: the rate that the judge reports is its sensitivity among the true cases, and 1 - specificity among the
others (Rogan and Gladen 1978). The interval has the uncertainty of all three, each with two unseen trials (Lang and
Reiczigel 2014).

By labels, which is prediction-powered inference: what people would have said of everything, from few labels and a
judge's word on all.

A judge's rate is biased by its mistakes, and its interval says nothing of that: with enough samples it is narrowly
wrong. People's labels alone are right and wide. Together (Angelopoulos and others 2023, Science 382): the judge's mean
over all samples, corrected by its mean error on the labelled ones. The judge's word is weighed by how well it predicts
people's (power tuning, Angelopoulos, Duchi and Zrnic 2023), for each part of the labels by the others (cross-fitting),
so that no label tunes the weight that it is held against.

Labelled samples are a part of the judged ones, drawn with known probabilities that need not be equal: errors are
averaged with the inverse probabilities as weights (Hájek 1971), and the variance is that of two phases of sampling
(Särndal, Swensson and Wretman 1992, chapter 9): the samples themselves, and the choice of whom to label. Both are
between clusters. The interval is Wilson's at that variance, with room for two unseen labels.

Where that is wider than the labels alone by more than 5 %, the labels alone are taken. So they are, with a mark, where
fewer than five clusters would be expected to differ from the rest: near 0 and 1 few labels seldom show how a judge
errs. Their interval is then Wilson's without its dip there, and no more than 5 % wider.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import hypot, sqrt
from statistics import NormalDist
from typing import Any

import numpy as np

from evalake.core.errors import MetricError
from evalake.metrics.columns import share_within
from evalake.metrics.estimator import LEAST_WEIGHT
from evalake.metrics.intervals import Array, Integers, Z, difference, modified_wilson, student, wilson


@dataclass(frozen=True, slots=True)
class Known:
    """A proportion: its value, and how many independent trials it rests on."""

    value: float
    trials: float

    @property
    def smoothed(self) -> float:
        """The proportion with one more success and one more failure."""
        return (self.value * self.trials + 1) / (self.trials + 2)


@dataclass(frozen=True, slots=True)
class Corrected:
    """A corrected estimate with its 95 % interval, the units behind it, and how it was corrected."""

    value: float
    se: float
    ci_low: float
    ci_high: float
    units: int
    how: str
    reliable: bool = True

    def of_share(self, share: Mapping[str, Any]) -> "Corrected":
        """Multiply by the share of rows that it is about, a measured rate, where the others count as 0 (MOVER)."""
        part, value = share["value"], share["value"] * self.value
        down, up = (
            hypot(part * (self.value - getattr(self, end)), self.value * (part - share[end]))
            for end in ("ci_low", "ci_high")
        )
        se = hypot(part * self.se, self.value * sqrt(part * (1 - part) / share["n_eff"]))
        return replace(
            self, value=value, se=se, ci_low=max(value - down, 0.0), ci_high=min(value + up, 1.0), units=share["units"]
        )


def by_calibration(rate: Known, sensitivity: Known, specificity: Known, units: int) -> Corrected | None:
    """Correct a judge's rate; None where it may find no more of the true cases than of the others."""
    above_chance = sensitivity.smoothed + specificity.smoothed - 1
    spread = sqrt(sum(k.smoothed * (1 - k.smoothed) / (k.trials + 2) for k in (sensitivity, specificity)))
    if above_chance <= Z * spread:
        return None
    whole = rate.trials + Z**2
    seen = (rate.value * rate.trials + Z**2 / 2) / whole
    centre = (seen + specificity.smoothed - 1) / above_chance
    inside = min(max(centre, 0.0), 1.0)
    parts = [
        weight * known.smoothed * (1 - known.smoothed) / (known.trials + 2)
        for weight, known in ((inside, sensitivity), (1 - inside, specificity))
    ]
    variance = seen * (1 - seen) / whole + inside * parts[0] + (1 - inside) * parts[1]
    se = sqrt(variance) / above_chance
    shift = 2 * Z**2 * (parts[0] - parts[1])
    denominator = max(sensitivity.value + specificity.value - 1, 1e-9)
    value = min(max((rate.value + specificity.value - 1) / denominator, 0.0), 1.0)
    low, high = (min(max(centre + shift + sign * Z * se, 0.0), 1.0) for sign in (-1, 1))
    how = f"by a calibration: sensitivity {sensitivity.value:.2f}, specificity {specificity.value:.2f}"
    return Corrected(value, se, min(low, value), max(high, value), units, how)


def more_labels(estimate_se: float, floor_se: float, labels: int) -> int | None:
    """Compute how many more labels halve the standard error; None where the samples alone keep it larger than that.

    `floor_se` is the error that remains if people label everything.
    """
    of_labels = estimate_se**2 - floor_se**2
    left = estimate_se**2 / 4 - floor_se**2
    if of_labels <= 0 or left <= 0:
        return None
    return max(1, round(labels * (of_labels / left - 1)))


def difference_of(first: Corrected, second: Corrected) -> dict[str, float]:
    """Compute the difference of two corrected rates and its interval, as if their errors were independent (MOVER).

    What a judge, or the samples, do to both sides alike makes it too wide.
    """
    names = "value", "ci_low", "ci_high"
    a, b = ([np.asarray(getattr(each, name)) for name in names] for each in (first, second))
    low, high = difference((a[0], a[1], a[2]), (b[0], b[1], b[2]), np.zeros(()))
    values = {"value_a": first.value, "value_b": second.value, "difference": first.value - second.value}
    return values | {"ci_low": float(low), "ci_high": float(high)}


def with_corrections(row: dict[str, Any], first: Corrected | None, second: Corrected | None) -> dict[str, Any]:
    """Put the difference of two corrected rates into a compared row, and move its bounds; as it is without both."""
    if first is None or second is None or row["difference"] is None:
        return row
    known = difference_of(first, second)
    moved = known["difference"] - row["difference"]
    bounds = {name: None if row[name] is None else row[name] + moved for name in ("bound_low", "bound_high")}
    p = implied_p(known["difference"], known["ci_low"], known["ci_high"])
    return row | known | bounds | {"p": p, "units": min(first.units, second.units)}


def implied_p(value: float, low: float, high: float) -> float | None:
    """Compute the two-sided p value that the end of an interval towards 0 implies; None where it has no width."""
    reach = value - low if value > 0 else high - value
    return 2 * NormalDist().cdf(-Z * abs(value) / reach) if reach > 0 else None


# Prediction-powered inference: corrected by people's labels.


FEWEST_LABELS = 5
"""The fewest labelled clusters for an estimate."""

FEWEST_UNLIKE = 5.0
"""Below so many clusters that are expected to differ from the rest, the labels alone decide, with a mark."""

FOLDS = 5
WIDER = 1.05
"""By so much may a correction be wider than the labels alone."""

SEED = 20_240_602


@dataclass(frozen=True, slots=True)
class PPIEstimate:
    """A corrected estimate: its value, standard error, 95 % interval and the labels it rests on."""

    value: float
    se: float
    ci_low: float
    ci_high: float
    labels: int
    units: int
    """How many clusters the labels are of."""
    marked: bool = False
    """Whether it is so near to 0 or 1 that it is that of the labels alone."""

    @property
    def width(self) -> float:
        """How wide the interval is."""
        return self.ci_high - self.ci_low


def ratio(
    numerator: Array,
    denominator: Array,
    labelled: Integers,
    human: Array,
    weight: Array,
    cluster: Integers | None = None,
    stratum: Integers | None = None,
) -> PPIEstimate | None:
    """Estimate the ratio of two sums over samples, between 0 and 1, whose true numerators are people's.

    Args:
        numerator: By sample: the judge's numerators (like its valid findings).
        denominator: By sample: the denominators, which nobody disputes (like all findings); all 1 for a proportion.
        labelled: By label: the number of the sample that it is of, without repetition.
        human: By label: people's numerators.
        weight: By label: what the sample stands for, like one over the probability with which it was drawn.
        cluster: By sample: the number of its cluster; without it each is one. Replicates of a sample are one cluster.
        stratum: By sample: the number of the stratum that it was drawn from, where the samples themselves are a draw.

    Returns:
        The estimate; None with labels of fewer than 5 clusters.

    Raises:
        MetricError: The arrays do not fit together.
    """
    f, d, y = (np.asarray(values, np.float64) for values in (numerator, denominator, human))
    weight = np.asarray(weight, np.float64)
    _require_fit(f, d, labelled, y, weight)
    whole = np.arange(len(f)) if cluster is None else np.unique(cluster, return_inverse=True)[1]
    own = np.unique(whole[labelled], return_inverse=True)[1]
    units = int(own.max(initial=-1)) + 1
    if units < FEWEST_LABELS or d.sum() <= 0 or d[labelled].sum() <= 0:
        return None
    share = weight / weight.sum()
    alone = _alone(d[labelled], y, share, own)
    drawn = np.zeros(len(f), dtype=np.int64) if stratum is None else stratum
    powered = _powered(f, d, labelled, y, share, (whole, drawn), own)
    if units * min(alone.value, 1 - alone.value, powered.value, 1 - powered.value) < FEWEST_UNLIKE:
        return _alone(d[labelled], y, share, own, marked=True)
    return alone if powered.width > WIDER * alone.width else powered


def _alone(d: Array, y: Array, share: Array, own: Integers, *, marked: bool = False) -> PPIEstimate:
    """Estimate from labels alone: Wilson's interval at the effective number of labels, without its dip if marked."""
    units, below = int(own.max()) + 1, float(share @ d)
    value = float(np.clip(share @ y / below, 0.0, 1.0))
    variance = _between(share * (y - value * d), own) / below**2
    most = 1.0 / float((np.bincount(own, share * d) ** 2).sum() / below**2)
    seen = variance * (units - 1) / units
    trials = most if seen <= 0 else min(max(value * (1 - value), 1e-12) / seen, most)
    low, high = (float(end) for end in wilson(value * trials, trials, _quantile(own)))
    if marked:
        more = (WIDER - 1) * (high - low)
        lowest, highest = (float(end) for end in modified_wilson(value * trials, trials))
        if value < 1 / 2:
            low = max(min(low, lowest), low - more)
        else:
            high = min(max(high, highest), high + more)
    return PPIEstimate(value, float(np.sqrt(variance)), min(low, value), max(high, value), len(y), units, marked)


def _powered(
    f: Array, d: Array, labelled: Integers, y: Array, share: Array, of_sample: tuple[Integers, Integers], own: Integers
) -> PPIEstimate:
    """Estimate from the judge's word on all, corrected by people's; labels weigh `share`, and are of clusters `own`.

    `of_sample` is the cluster and the stratum of each sample.
    """
    whole, stratum = of_sample
    size, n, units = len(f), len(y), int(own.max()) + 1
    judge, scale = f[labelled], d.mean()
    tuned = _cross_fitted(judge, y, share, own)
    error = y - tuned * judge
    bias = float(share @ error)
    value = (float(share @ tuned) * f.mean() + bias) / scale

    # As if one label at least had disagreed by one: no disagreement among few labels does not show that there is none.
    weights = np.bincount(own, share)
    spread = max(_between(share * (error - bias), own), float((weights**2).sum()) / (units + 2))
    residual = y - value * d[labelled]
    centre = float(share @ residual)
    between = float(share @ (residual - centre) ** 2) * units / (units - 1)
    together = max(_together(residual - centre, own), _together(f - f.sum() / d.sum() * d, whole))
    effect = 1 + together * (float((np.bincount(whole) ** 2).sum()) / size - 1)
    strata = stratum[labelled]
    between *= float(share_within(residual - centre, strata, np.zeros_like(strata), 1)[0]) if strata.any() else 1.0
    variance = (between * effect / size + spread * max(0.0, 1 - n / size)) / scale**2
    kept = float(np.clip(value, 0.0, 1.0))
    weight_of_unseen = max(LEAST_WEIGHT, abs(1 - 2 * kept))
    unseen = float((weights**2).mean()) * ((scale - bias) ** 2 + (scale + bias) ** 2) * units / (units - 1)
    wider = variance + weight_of_unseen * unseen * max(0.0, 1 - n / size) / scale**2
    low, high = _limits(kept, wider, units, float(d.sum()))
    return PPIEstimate(kept, float(np.sqrt(variance)), low, high, n, units)


def _between(added: Array, own: Integers) -> float:
    """Compute the variance of a sum between clusters, from what each row adds to its error."""
    sums = np.bincount(own, added)
    return float((sums**2).sum()) * len(sums) / max(1, len(sums) - 1)


def _together(residual: Array, cluster: Integers) -> float:
    """Compute how far residuals of a cluster hang together, 0 to 1; 0 where no cluster has two rows."""
    counts, sums, squares = (np.bincount(cluster, each) for each in (np.ones_like(residual), residual, residual**2))
    pairs = float((counts * (counts - 1)).sum())
    if pairs <= 0 or squares.sum() <= 0:
        return 0.0
    return float(np.clip((sums**2 - squares).sum() / pairs / (squares.sum() / counts.sum()), 0.0, 1.0))


def _quantile(own: Integers) -> float:
    """Find Student's quantile where clusters have several labels, else that of the normal distribution."""
    units = int(own.max()) + 1
    return Z if units == len(own) else float(student(units))


def _cross_fitted(judge: Array, human: Array, share: Array, own: Integers) -> Array:
    """Compute by label the judge's weight, from the labels of other clusters than those of its fold."""
    fold = (np.random.default_rng(SEED).permutation(int(own.max()) + 1) % FOLDS)[own]
    tuned = np.zeros(len(judge))
    for number in range(FOLDS):
        others = fold != number
        tuned[~others] = _judge_weight(judge[others], human[others], share[others] / share[others].sum())
    return tuned


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
