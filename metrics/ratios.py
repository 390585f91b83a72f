"""Ratios of sums over units: how many independent trials they are worth, and their intervals."""

import numpy as np

from metrics.intervals import Array, Z, counts, modified_wilson, student
from metrics.units import Linearised, View

LEAST_WEIGHT = 0.2
"""Of unseen extremes, in the interval of a bounded mean; see `bounded`."""


def quotient(numerator: Array, denominator: Array) -> Array:
    """Divide, NaN by 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(denominator != 0, numerator / denominator, np.nan)


def bounded(
    line: Linearised, low: float, high: float | Array, least_weight: float, heaviest: float | None = None
) -> tuple[Array, Array]:
    """Compute the interval of a ratio between bounds: Wilson's, as of that many trials that have its variance.

    The variance is taken between the units seen and, by a weight, two unseen ones, one at either bound. The weight is
    the share of units that are at a bound already, so that values of 0 and 1 give Wilson's interval and others
    Student's, bent near the bounds as Wilson's is. Where all units agree, the unseen ones count in full.
    """
    units = line.units
    scaled = _scaled(line, low, high)
    at_a_bound = (scaled <= 1e-12 * line.denominator) | (scaled >= (1 - 1e-12) * line.denominator)
    at_a_bound &= line.denominator != 0
    weight = np.maximum(quotient(units.total(at_a_bound.astype(np.float64)), line.count), least_weight)
    weight = np.where(line.variance > 0, weight, 1.0)
    n_eff = effective_size(line, low, high, weight, heaviest)
    n_eff = n_eff * (Z / student(line.count)) ** 2
    with np.errstate(all="ignore"):
        share = np.clip((line.value - low) / (np.asarray(high) - low), 0.0, 1.0)
        ends = modified_wilson(np.where(share >= 1, n_eff, share * n_eff), n_eff)
        below, above = (low + (np.asarray(high) - low) * end for end in ends)
    return np.minimum(below, line.value), np.maximum(above, line.value)


def effective_size(
    line: Linearised, low: float, high: float | Array, weight: Array, heaviest: float | None = None
) -> Array:
    """Compute how many independent trials would have the variance between units, and two unseen ones by `weight`."""
    units, size = line.units, line.unit_size
    with np.errstate(all="ignore"):
        numerator = _scaled(line, low, high)
        largest = size if heaviest is None else heaviest * units.total(line.rows**2) / units.total(line.rows)
        whole = line.denominators + weight * (size + largest)
        share = (units.total(numerator) + weight * largest) / whole
        squares = units.total((numerator - share[units.group_of] * line.denominator) ** 2)
        squares = squares + weight * ((largest * (1 - share)) ** 2 + (size * share) ** 2)
        return np.asarray(line.denominators / (squares / (share * (1 - share) * whole)))


def _scaled(line: Linearised, low: float, high: float | Array) -> Array:
    """The numerators by unit, as of a ratio between 0 and 1."""
    upper = np.broadcast_to(np.asarray(high, np.float64), line.value.shape)[line.units.group_of]
    return np.asarray((line.numerator - low * line.denominator) / (upper - low))


def mean_of_counts(view: View, line: Linearised) -> tuple[Array, Array]:
    """Compute the interval of a mean of counts, whose variance allows for a unit in which more comes together.

    Between the units seen, as `bounded`, and by a weight one unseen one, which counts in each row one more than the
    largest row seen (add one, Laplace 1814): few events in few units do not show how many others have. The weight is
    the share of units that counted nothing.
    """
    units = line.units
    empty = (line.numerator == 0) & (line.denominator != 0)
    weight = np.maximum(quotient(units.total(empty.astype(np.float64)), line.count), LEAST_WEIGHT)
    with np.errstate(all="ignore"):
        unseen = line.unit_size * (1 + view.largest("numerator"))
        whole = line.denominators + weight * line.unit_size
        mean = (units.total(line.numerator) + weight * unseen) / whole
        squares = units.total((line.numerator - mean[units.group_of] * line.denominator) ** 2)
        squares = squares + weight * (unseen - mean * line.unit_size) ** 2
        return counts(line.value, squares / line.denominators**2 / mean, line.count)


def effective_rows(view: View, line: Linearised, n: Array) -> Array:
    """Divide n by the design effect: the variance between units over that between rows, or as of units all alike."""
    if line.single.all():
        return np.where(n > 0, n, np.nan)
    denominator = view.values("denominator")
    residual = view.values("numerator") - view.of_rows(line.value) * denominator
    residual = np.where(denominator != 0, residual, 0.0)
    rows = view.units.total(line.rows)
    with np.errstate(all="ignore"):
        between_rows = rows / (rows - 1) * view.total_of_rows(residual**2) / line.denominators**2
        effect = line.variance / between_rows
        alike = view.units.total(line.rows**2) / rows
        effect = np.where(np.isfinite(effect) & (line.variance > 0), effect, alike)
        return np.where(line.single, n, n / effect) + 0 * line.value
