"""95 % intervals from closed forms: Wilson, its extension to any bounded quantity, log scale, and their combination.

Every interval rests on the variance between units (`evalake.metrics.units`), for any dependence within one, and
stays in the range of its quantity. Where the units seen do not differ at all, it has the width that so many units
allow.
"""

from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

CONFIDENCE = 0.95
Z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
"""Two-sided standard normal quantile, 1.95996…"""

FEW = 4.0
"""The number of successes, and of failures, from which Wilson's interval needs no correction."""

ROUNDING = 1e-13
"""A standard error below this share of its value is rounding error."""


def wilson(successes: ArrayLike, n: ArrayLike, z: ArrayLike = Z) -> tuple[Array, Array]:
    """Compute the score interval of a proportion (Wilson 1927): (low, high), NaN where n is 0.

    Chosen because, unlike p ± 1.96 se, it keeps close to its 95 % at small n and at proportions near 0 and 1 and never
    leaves [0, 1]; at 0 and n successes its end there is exactly 0 and 1. Neither number needs to be whole.
    """
    k, trials, z = (np.asarray(x, np.float64) for x in (successes, n, z))
    with np.errstate(divide="ignore", invalid="ignore"):
        p = k / trials
        centre = (p + z**2 / (2 * trials)) / (1 + z**2 / trials)
        variance = np.maximum(p * (1 - p), 0.0) / trials
        half = z / (1 + z**2 / trials) * np.sqrt(variance + (z / (2 * trials)) ** 2)
    low = np.where(k <= 0, 0.0, np.clip(centre - half, 0.0, 1.0))
    high = np.where(k >= trials, 1.0, np.clip(centre + half, 0.0, 1.0))
    return np.where(trials > 0, low, np.nan), np.where(trials > 0, high, np.nan)


def modified_wilson(successes: ArrayLike, n: ArrayLike) -> tuple[Array, Array]:
    """Compute Wilson's interval without its dips near 0 and 1 (Brown, Cai and DasGupta 2001, section 4.1.1).

    Below `FEW` successes, the lower end is at most that of a Poisson count with 5 % below it, likewise for failures.
    """
    from scipy.special import gammaincinv

    k, trials = (np.asarray(x, np.float64) for x in (successes, n))
    low, high = wilson(k, trials)

    def least(events: Array) -> Array:
        with np.errstate(all="ignore"):
            share = gammaincinv(np.where(events > 0, events, 1.0), 1 - CONFIDENCE) / trials
        return np.where((events > 0) & (events < FEW), share, np.inf)

    return np.minimum(low, least(k)), np.maximum(high, 1 - least(trials - k))


def student(units: ArrayLike, confidence: float = CONFIDENCE) -> Array:
    """Compute the two-sided Student t quantile for a variance between so many units; NaN below 2."""
    from scipy.special import stdtrit

    size = np.asarray(units, np.float64)
    known = size >= 2
    return np.where(known, stdtrit(np.where(known, size, 2.0) - 1, (1 + confidence) / 2), np.nan)


def student_t(mean: ArrayLike, se: ArrayLike, units: ArrayLike) -> tuple[Array, Array]:
    """Compute the interval of a mean of values without bounds (Student 1908): (low, high), NaN below 2 units."""
    centre, half = np.asarray(mean, np.float64), student(units) * np.asarray(se, np.float64)
    return centre - half, centre + half


def above_zero(mean: ArrayLike, se: ArrayLike, units: ArrayLike) -> tuple[Array, Array]:
    """Compute the interval of a mean of amounts like seconds or dollars, on the log scale; NaN where it has none.

    Amounts are skewed to the right, so that the mean of a sample is more often too low, and more so, than too high:
    the upper end reaches further by the square of the relative half width.
    """
    centre = np.asarray(mean, np.float64)
    with np.errstate(all="ignore"):
        c = student(units) * np.asarray(se, np.float64) / centre
        return centre * np.exp(-c), centre * np.exp(c + c**2)


def counts(mean: Array, variance: Array, units: Array) -> tuple[Array, Array]:
    """Compute the score interval of a mean of overdispersed counts (Rao 1948; quasi-Poisson, Wedderburn 1974).

    Args:
        mean: The mean, 0 or more.
        variance: The squared standard error of a mean slightly above 0, over that mean.
        units: How many units the variance is between.
    """
    half = student(units) ** 2 * variance / 2
    reach = np.sqrt(half**2 + 2 * half * mean)
    return np.maximum(mean + half - reach, 0.0), mean + half + reach


def correlation(value: ArrayLike, se: ArrayLike, units: ArrayLike) -> tuple[Array, Array]:
    """Compute the interval of what lies between -1 and 1, on Fisher's scale.

    At -1 and 1, and where the units agree by chance, it is not narrower than the interval of as many right guesses.
    """
    r, count = np.asarray(value, np.float64), np.asarray(units, np.float64)
    with np.errstate(all="ignore"):
        z = np.arctanh(r)
        half = student(count) * np.asarray(se, np.float64) / (1 - r**2)
        low, high = np.tanh(z - half), np.tanh(z + half)
        least_low, least_high = (2 * end - 1 for end in wilson((r + 1) / 2 * count, count))
    at_an_end = np.abs(r) > 1 - ROUNDING
    return np.where(at_an_end, least_low, low), np.where(at_an_end, least_high, high)


def combined(margins: Array, correlations: Array) -> Array:
    """Combine the margins of parts into that of a function of them (MOVER, Zou and Donner 2008).

    Args:
        margins: [parts, ...] by how much the function changes when one part goes to its limit.
        correlations: [parts, parts, ...] of the changes.
    """
    squares = np.einsum("i...,ij...,j...->...", margins, correlations, margins)
    return np.asarray(np.sqrt(np.maximum(squares, 0.0)))


def difference(
    first: tuple[Array, Array, Array], second: tuple[Array, Array, Array], correlated: Array
) -> tuple[Array, Array]:
    """Compute the interval of a difference of two estimates, each (value, low, high) (MOVER, Zou 2007)."""
    (a, a_low, a_high), (b, b_low, b_high) = first, second

    def margin(one: Array, other: Array) -> Array:
        return np.asarray(np.sqrt(np.maximum(one**2 + other**2 - 2 * correlated * one * other, 0.0)))

    return a - b - margin(a - a_low, b_high - b), a - b + margin(a_high - a, b - b_low)
