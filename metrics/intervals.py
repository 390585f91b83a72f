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


def percentile(draws: Array) -> tuple[float, float, float]:
    """(standard error, low, high) of bootstrap draws of one statistic, shape [draws] (Efron 1979).

    The interval runs between the draws' 2.5 and 97.5 percentiles: it needs no formula for the statistic, follows
    its skewness, and stays within its range. Draws in which the statistic is undefined (NaN) are left out; with fewer
    than two defined ones all three are NaN.
    """
    defined = draws[~np.isnan(draws)]
    if defined.size < 2:
        return np.nan, np.nan, np.nan
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(defined, [tail, 1 - tail])
    return float(defined.std(ddof=1)), float(low), float(high)
