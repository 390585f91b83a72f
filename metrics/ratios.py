"""Ratios of sums over units: how many independent trials they are worth, and their intervals."""

import numpy as np

from metrics.intervals import Array, Z, counts, modified_wilson, student
from metrics.units import Linearised, View

TIE = 1e-12
"""Values nearer to a bound, as a share of what lies between the bounds, are at it."""

LEAST_WEIGHT = 0.2
"""The least weight of unseen extremes in the interval of a bounded mean; see `bounded`."""


def quotient(numerator: Array, denominator: Array) -> Array:
    """Divide; NaN where the denominator is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(denominator != 0, numerator / denominator, np.nan)


def bounded(
    line: Linearised, low: float, high: float | Array, least_weight: float, heaviest: float | None = None
) -> tuple[Array, Array]:
    """Compute the interval of a ratio between bounds: Wilson's, for as many trials as have its variance.

    The variance is taken between the units seen and, by a weight, two unseen ones, one at either bound. The weight is
    the share of units that are at a bound already, so that values of 0 and 1 give Wilson's interval and others
    Student's, bent near the bounds as Wilson's is. Where all units agree, the unseen ones count in full.
    """
    weight = np.maximum(quotient(_at_a_bound(line, low, high), line.count), least_weight)
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
    """Compute how many independent trials would have the variance between units and, by `weight`, two unseen ones."""
    below, width = line.below, np.asarray(high) - low
    size = below.unit_size
    with np.errstate(all="ignore"):
        largest = size if heaviest is None else heaviest * below.row_squares / below.row_total
        whole = below.total + weight * (size + largest)
        share = ((line.total - low * below.total) / width + weight * largest) / whole
        squares = line.squares(low + share * width) / width**2
        squares = squares + weight * ((largest * (1 - share)) ** 2 + (size * share) ** 2)
        return np.asarray(below.total / (squares / (share * (1 - share) * whole)))


def _at_a_bound(line: Linearised, low: float, high: float | Array) -> Array:
    """Count the units of each group that are at a bound, of those that count."""
    units, sums = line.units, line.below.sums
    width = units.spread(np.asarray(high) - low) if np.ndim(high) else high - low
    scaled = (line.numerator - low * sums) / width
    at_a_bound = (scaled <= TIE * sums) | (scaled >= (1 - TIE) * sums)
    return units.total((at_a_bound & (sums != 0)).astype(np.float64))


def mean_of_counts(view: View, line: Linearised) -> tuple[Array, Array]:
    """Compute the interval of a mean of counts, whose variance allows for an unseen unit with higher counts.

    It is taken between the units seen, as in `bounded`, and by a weight one unseen one, which counts in each row one
    more than the largest row seen (add one, Laplace 1814): few events in few units do not show how many others have.
    The weight is the share of units that counted nothing.
    """
    units, below = line.units, line.below
    empty = (line.numerator == 0) & (below.sums != 0)
    weight = np.maximum(quotient(units.total(empty.astype(np.float64)), line.count), LEAST_WEIGHT)
    with np.errstate(all="ignore"):
        unseen = below.unit_size * (1 + view.largest("numerator"))
        whole = below.total + weight * below.unit_size
        mean = (line.total + weight * unseen) / whole
        squares = line.squares(mean) + weight * (unseen - mean * below.unit_size) ** 2
        return counts(line.value, squares / below.total**2 / mean, line.count)


def effective_rows(view: View, line: Linearised, n: Array) -> Array:
    """Divide n by the design effect: the variance between units over that between rows, or as of equal rows."""
    if line.single.all():
        return np.where(n > 0, n, np.nan)
    below = line.below
    with np.errstate(all="ignore"):
        between_rows = below.row_total / (below.row_total - 1) * _squares_of_rows(view, line.value) / below.total**2
        effect = line.variance / between_rows
        alike = below.row_squares / below.row_total
        effect = np.where(np.isfinite(effect) & (line.variance > 0), effect, alike)
        return np.where(line.single, n, n / effect) + 0 * line.value


def _squares_of_rows(view: View, value: Array) -> Array:
    """Add up the squared residuals of the rows of each group, about their mean in all rows so as to lose no digits."""
    units, denominator = view.units, view.columns.values(view.named("denominator"))
    centre = quotient(*(np.asarray(view.totals(role).sum()) for role in ("numerator", "denominator")))
    apart = np.where(denominator != 0, view.columns.values(view.named("numerator")) - centre * denominator, 0.0)
    is_condition = view.columns.is_condition(view.named("denominator"))
    squares, across = (units.total_of_rows(each[units.rows]) for each in (apart**2, apart * denominator))
    below = view.totals("denominator") if is_condition else units.total_of_rows(denominator[units.rows] ** 2)
    moved = value - centre
    return np.asarray(squares - moved * (2 * across - moved * below))
