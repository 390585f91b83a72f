"""95 % intervals that follow from a formula: Wilson for proportions, Student t for means, percentiles for draws."""

from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

CONFIDENCE = 0.95
Z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
"""Two-sided standard normal quantile, 1.95996…"""


def wilson(successes: ArrayLike, n: ArrayLike) -> tuple[Array, Array]:
    """Score interval of a proportion (Wilson 1927): (low, high), NaN where n is 0.

    Chosen because, unlike p ± 1.96 se, it keeps close to its 95 % at small n and at proportions near 0 and 1 and never
    leaves [0, 1]; at 0 and n successes its end there is exactly 0 and 1.
    """
    k, trials = np.asarray(successes, np.float64), np.asarray(n, np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = k / trials
        centre = (p + Z**2 / (2 * trials)) / (1 + Z**2 / trials)
        half = Z / (1 + Z**2 / trials) * np.sqrt(p * (1 - p) / trials + (Z / (2 * trials)) ** 2)
    low = np.where(k == 0, 0.0, np.clip(centre - half, 0.0, 1.0))
    high = np.where(k == trials, 1.0, np.clip(centre + half, 0.0, 1.0))
    return np.where(trials > 0, low, np.nan), np.where(trials > 0, high, np.nan)


def student_t(mean: ArrayLike, sd: ArrayLike, n: ArrayLike) -> tuple[Array, Array]:
    """Interval of a mean from its sample standard deviation (ddof 1): (low, high), NaN where n < 2 (Student 1908).

    Exact for normal values at any n, and right in the limit for all others; scores and latencies are means of few to
    many values whose variance is unknown, which is just its case.
    """
    from scipy.special import stdtrit

    centre, spread, size = (np.asarray(x, np.float64) for x in (mean, sd, n))
    known = size >= 2
    count = np.where(known, size, 2.0)
    half = np.where(known, stdtrit(count - 1, (1 + CONFIDENCE) / 2) * spread / np.sqrt(count), np.nan)
    return centre - half, centre + half


def percentile(draws: Array) -> tuple[Array, Array, Array]:
    """(standard error, low, high) of bootstrap draws, of each statistic: draws [statistics, draws] (Efron 1979).

    The interval runs between the draws' 2.5 and 97.5 percentiles: it needs no formula for the statistic, follows
    its skewness, and stays within its range. Draws in which the statistic is undefined (NaN) are left out; with fewer
    than two defined ones all three are NaN.
    """
    ordered = np.sort(draws, axis=1)  # NaN last
    defined = ordered.shape[1] - np.isnan(ordered).sum(axis=1)
    enough = defined >= 2
    n = np.where(enough, defined, 1)
    within = np.arange(ordered.shape[1]) < defined[:, None]
    mean = np.where(within, ordered, 0.0).sum(axis=1) / n
    squares = np.where(within, ordered - mean[:, None], 0.0) ** 2
    error = np.sqrt(squares.sum(axis=1) / np.where(enough, n - 1, 1))
    tail = (1 - CONFIDENCE) / 2
    low, high = (_quantile(ordered, n, q) for q in (tail, 1 - tail))
    unknown = np.full(len(draws), np.nan)
    return np.where(enough, error, unknown), np.where(enough, low, unknown), np.where(enough, high, unknown)


def _quantile(ordered: Array, n: Integers, q: float) -> Array:
    """Of the first n of each row, by linear interpolation."""
    position = (n - 1) * q
    below = np.floor(position).astype(np.int64)
    above = np.minimum(below + 1, n - 1)
    first, second = (np.take_along_axis(ordered, at[:, None], axis=1)[:, 0] for at in (below, above))
    return np.asarray(first + (position - below) * (second - first))
