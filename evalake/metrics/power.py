"""Power: how many samples, and repeats of each, show a difference between two models, from how such differences vary.

What a unit adds to a paired difference varies between units (`between`), and between repeats of one (`within`): with n
units, each asked r times, the difference has the variance (between + within / r) / n.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import NormalDist

import numpy as np
import polars as pl

from evalake.metrics.columns import Columns, Inputs
from evalake.metrics.compare import Paired
from evalake.metrics.compute import Metric
from evalake.metrics.intervals import Array, Integers
from evalake.metrics.units import View

ALPHA = 0.05
"""Two-sided level of the test that is to find the difference."""


@dataclass(frozen=True, slots=True)
class Components:
    """Variances of what a unit adds to the difference of two models; `within` is None where nothing was repeated."""

    first: str
    second: str
    judge: str | None
    units: int
    replicates: int
    between: float
    within: float | None
    spread: tuple[float, float] = (1.0, 1.0)
    """The 95 % interval of the variance, as multiples of it: a small pilot tells it badly."""

    def variance(self, replicates: int) -> float | None:
        """Compute the variance for a unit asked `replicates` times; None where that cannot be known."""
        if self.within is None:
            return self.between if replicates == self.replicates else None
        return self.between + self.within / replicates


def components(frame: pl.DataFrame, metric: Metric) -> list[Components]:
    """Split the variance of the differences of all pairs of models, judge by judge, on the units that both have.

    Args:
        frame: Result rows with model, judge, replicate and cluster.
        metric: The metric whose difference is to be found.
    """
    one = replace(metric, slices=("replicate",))
    models = frame["model"].unique().sort().to_list()
    return [each for pair in combinations(models, 2) for each in _of_pair(frame, one, *pair)]


def required(variance: float, difference: float, power: float) -> int:
    """Compute how many units find a difference with that power, at a two-sided level of 5 %."""
    return max(2, math.ceil(_quantiles(power) ** 2 * variance / difference**2))


def detectable(variance: float, units: int, power: float) -> float:
    """Compute the smallest difference that this number of units detects with this power."""
    return _quantiles(power) * math.sqrt(variance / units)


def _quantiles(power: float) -> float:
    normal = NormalDist()
    return normal.inv_cdf(1 - ALPHA / 2) + normal.inv_cdf(power)


def _of_pair(frame: pl.DataFrame, metric: Metric, first: str, second: str) -> Iterator[Components]:
    sides = [
        frame.lazy().filter(pl.col("model") == model).with_columns(side=pl.lit(side))
        for side, model in enumerate((first, second))
    ]
    inputs = Inputs.read(sides, [metric], ("judge", "side"), "cluster")
    columns = Columns(inputs.frame)
    paired = Paired.of(inputs, columns, "replicate")
    estimate = metric.estimator.estimate(View(columns, paired.units, inputs.columns[0]))
    if not len(estimate.influence):
        return
    by_judge: dict[str | None, list[tuple[Integers, Array]]] = {}
    for pair in paired.pairs:
        if np.isnan(estimate.value[list(pair.groups)]).any():
            continue
        apart = pair.of_side(0, estimate.influence) - pair.of_side(1, estimate.influence)
        by_judge.setdefault(pair.judge, []).append((pair.clusters, pair.size * apart))
    for judge, repeats in by_judge.items():
        yield _split(first, second, judge, repeats)


def _split(first: str, second: str, judge: str | None, repeats: Sequence[tuple[Integers, Array]]) -> Components:
    """Split the variance of what units add, in each repeat, as an analysis of variance does."""
    times = len(repeats)
    if times == 1:
        added = repeats[0][1]
        return Components(first, second, judge, len(added), 1, float(np.mean(added**2)), None, _spread(added))
    clusters = repeats[0][0]
    for known, _ in repeats[1:]:
        clusters = np.intersect1d(clusters, known)
    table = np.stack([added[np.isin(known, clusters)] for known, added in repeats])
    means = table.mean(axis=0)
    within = float(((table - means) ** 2).sum() / (len(clusters) * (times - 1)))
    between = max(0.0, float(np.mean(means**2)) - within / times)
    return Components(first, second, judge, len(clusters), times, between, within, _spread(means))


def _spread(added: Array) -> tuple[float, float]:
    """Compute the interval of a variance, as multiples of it, from how unequal the squares behind it are.

    It is that of chi-square, of as many degrees of freedom as have the squares' own variance (Satterthwaite 1946). One
    unseen unit that differs as much as the largest seen counts, for rare differences tell little of themselves.
    """
    from scipy.special import gammaincinv

    squares = np.append(added**2, (added**2).max(initial=0.0))
    variance = squares.var()
    if variance == 0:
        variance = 2 * squares.mean() ** 2
    free = float(2 * len(squares) * squares.mean() ** 2 / variance) if variance else 1.0
    low, high = (float(free / (2 * gammaincinv(free / 2, share))) for share in (1 - ALPHA / 2, ALPHA / 2))
    return low, high


# Intervals that one may look at after every round of samples, and stop when they settle what was asked.


ERROR = 0.05
"""How often the truth is outside at any look, at most, about."""

FEWEST_UNITS = 20
"""The fewest units that settle a rule: the boundary is asymptotic."""


@dataclass(frozen=True, slots=True)
class Anytime:
    """The widening of an interval that is looked at repeatedly.

    Attributes:
        most_units: How many units there will be at most; the widening is least at a quarter of them, where sampling
            that stops early usually stops.
    """

    most_units: int

    def factor(self, units: int) -> float:
        """Compute how many times wider the interval is, at so many units, than that of a single look."""
        spread = -2 * math.log(ERROR)
        scale = (spread + math.log(spread + 1)) / max(self.most_units / 4, FEWEST_UNITS) * units
        boundary = math.sqrt(2 * (scale + 1) / scale * math.log(math.sqrt(scale + 1) / ERROR))
        return boundary / NormalDist().inv_cdf(1 - ERROR / 2)

    def widened(
        self, value: float, low: float | None, high: float | None, units: int
    ) -> tuple[float | None, float | None]:
        """Widen the interval of a value; none where there was none, or where there are too few units for one."""
        if low is None or high is None or units < FEWEST_UNITS:
            return None, None
        factor = self.factor(units)
        return value - factor * (value - low), value + factor * (high - value)
