"""Standard deviations, of values and of repeats: intervals on the log scale."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import polars as pl
from typing_extensions import override

from metrics.estimator import Draw, Estimate, Estimator
from metrics.intervals import Array, student
from metrics.ratios import LEAST_WEIGHT, bounded, quotient
from metrics.units import Linearised, View

ROUNDING = 1e-14
"""Variation below this share of the mean square is rounding error of the sums, not variation."""


@dataclass(frozen=True, eq=False)
class Deviation(Estimator):
    """The population's standard deviation (ddof 0) over the rows that have a value, between `low` and `high`.

    Where values have bounds, the interval allows for unseen ones at a bound as that of a mean does, so it has a width
    where all values seen are equal; without bounds there is none then.
    """

    quantity: pl.Expr
    low: float = -np.inf
    high: float = np.inf

    @override
    def inputs(self) -> Mapping[str, pl.Expr]:
        value = self.quantity.cast(pl.Float64)
        return {"value": value, "square": value**2, "known": value.is_not_null()}

    @override
    def drawn(self, draw: Draw) -> Array:
        n = draw.sums("known")
        mean, square = quotient(draw.sums("value"), n), quotient(draw.sums("square"), n)
        return np.asarray(np.sqrt(np.where(square - mean**2 > ROUNDING * square, square - mean**2, 0.0)))

    @override
    def estimate(self, view: View) -> Estimate:
        n = view.totals("known")
        mean = view.ratio("value", "known").value
        known, of_row = view.values("known") != 0, np.nan_to_num(mean)[view.units.row_group]
        deviations = view.units.by_unit(np.where(known, view.values("value") - of_row, 0.0) ** 2)
        varied = quotient(view.units.total(deviations), n) > ROUNDING * mean**2
        line = Linearised(deviations * view.units.spread(varied.astype(np.float64)), view.over("known"))
        with np.errstate(all="ignore"):
            farthest = np.maximum(mean - self.low, self.high - mean)
        return _root(line, n, farthest, (self.high - self.low) / 2)


@dataclass(frozen=True, eq=False)
class Repeats(Estimator):
    """The root of the pooled variance within what repeats measure: sum of `squares` over sum of `freedom`.

    Attributes:
        squares: Each row's squared deviation from the mean of its repeats.
        freedom: Each row's share of the degrees of freedom: 1 - 1/repeats.
        n: What each row contributes to the number of things measured repeatedly.
    """

    counted: ClassVar[frozenset[str]] = frozenset({"n"})
    squares: pl.Expr
    freedom: pl.Expr
    n: pl.Expr

    @override
    def inputs(self) -> Mapping[str, pl.Expr]:
        return {"squares": self.squares, "freedom": self.freedom, "n": self.n}

    @override
    def drawn(self, draw: Draw) -> Array:
        return np.asarray(np.sqrt(quotient(draw.sums("squares"), draw.sums("freedom"))))

    @override
    def estimate(self, view: View) -> Estimate:
        line = view.ratio("squares", "freedom")
        n = np.where(line.below.total > 0, view.totals("n"), 0.0)
        return _root(line, n, np.full_like(n, np.inf), np.inf)


def _root(line: Linearised, n: Array, farthest: Array, most: float) -> Estimate:
    """Estimate the root of a mean square whose squares are at most `farthest`², and which is itself at most `most`.

    Mean squares are skewed to the right: the upper end reaches further by the square of the relative half width.
    """
    value = np.sqrt(line.value)
    with np.errstate(all="ignore"):
        se = np.where(line.value > 0, np.sqrt(line.variance) / (2 * value), np.nan)
        half = student(line.count) * se / value
        low, high = value * np.exp(-half), np.minimum(value * np.exp(half + half**2), most)
        bound = np.where(np.isfinite(farthest) & (farthest > 0), farthest**2, np.nan)
        least, largest = (np.sqrt(end) for end in bounded(line, 0.0, bound, LEAST_WEIGHT))
        low, high = np.fmin(low, least), np.fmax(high, np.minimum(largest, most))
    low, high = np.where(np.isnan(value), np.nan, low), np.where(np.isnan(value), np.nan, high)
    units = line.count * (n > 0)

    def influence() -> Array:
        slope = np.where(line.value > 0, 1 / (2 * np.where(value > 0, value, 1.0)), 0.0)
        return np.asarray(line.influence * line.units.spread(slope))

    return Estimate(value, n, units, np.where(n > 0, units, np.nan), se, low, high, units, influence)


def population_std(
    value: pl.Expr, where: pl.Expr | None = None, low: float = -np.inf, high: float = np.inf
) -> Deviation:
    """Declare the population's standard deviation (ddof 0) over the rows `where` that have a value."""
    return Deviation(value if where is None else pl.when(where).then(value), low, high)


def pooled_within(value: pl.Expr, of: tuple[str, ...]) -> Repeats:
    """Declare the pooled standard deviation (ddof 1) of a value that is known more than once for the columns `of`."""
    known = value.is_not_null()
    times = known.sum().over(of)
    repeated = known & (times > 1)
    deviation = (value.cast(pl.Float64) - value.cast(pl.Float64).mean().over(of)) ** 2
    first = repeated & (known.cast(pl.Int64).cum_sum().over(of) == 1)
    return Repeats(pl.when(repeated).then(deviation), pl.when(repeated).then(1 - 1 / times), n=first)
