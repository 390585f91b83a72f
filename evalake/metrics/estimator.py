"""An estimator: the inputs that it reads from each row, and its value in every group and draw."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from types import NoneType
from typing import ClassVar, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray
from typing_extensions import override

from evalake.metrics.columns import added_up
from evalake.metrics.intervals import Array, Integers, Z, correlation, counts, modified_wilson, student
from evalake.metrics.units import Linearised, View


class Draw(Protocol):
    """Sums of inputs in each of many draws of units, like exchanges of two models' answers."""

    @property
    def view(self) -> View:
        """The rows that are drawn from."""

    def sums(self, role: str) -> Array:
        """Add up an input in each draw, [draws]."""

    def apart(self, role: str, label: Integers) -> Array:
        """Add up an input in each draw for every label above 0 of the view's rows, [draws, labels]."""

    def part(self, name: str) -> "Draw":
        """Narrow the draw to the inputs of one part of a composite."""


def every_row() -> pl.Expr:
    """Return the condition that every row meets."""
    return pl.lit(True)


@dataclass(frozen=True, eq=False)
class Estimate:
    """One metric in many groups; arrays of shape [groups], NaN where there is no such number.

    Attributes:
        units: Distinct units behind `n`.
        n_eff: The effective number of independent rows.
        fewest: The units of the part that has fewest, which decides whether the whole is reliable; 0 for a mean of
            amounts, or a deviation without bounds, that rests on few of them.
        make_influence: Makes `influence`; None without uncertainty.
    """

    value: Array
    n: Array
    units: Array
    n_eff: Array
    se: Array
    ci_low: Array
    ci_high: Array
    fewest: Array
    make_influence: Callable[[], Array] | None

    @classmethod
    def bare(cls, value: Array, n: Array, units: Array) -> "Estimate":
        """Make a value without uncertainty, as of a count, which estimates nothing beyond itself."""
        unknown = np.full(len(n), np.nan)
        kept = np.where(n > 0, value, np.nan)
        return cls(kept, n, units, unknown, unknown, unknown, unknown, units, None)

    @cached_property
    def influence(self) -> Array:
        """What each unit adds to the error, [units], whose squares sum up to its variance but for strata."""
        return np.empty(0) if self.make_influence is None else self.make_influence()


class Estimator(Protocol):
    """What every estimator provides."""

    counted: ClassVar[frozenset[str]] = frozenset()
    """Inputs that must be Boolean or whole numbers."""

    @property
    def labels(self) -> frozenset[str]:
        """Inputs that tell rows apart, and are not added up."""
        return frozenset()

    def inputs(self) -> Mapping[str, pl.Expr]:
        """List what it reads of each row, by name."""

    def drawn(self, draw: Draw) -> Array:
        """Compute the quantity in each draw, [draws]; NaN where it is undefined, or no function of sums."""

    def estimate(self, view: View) -> Estimate:
        """Estimate the quantity in each group. Raises MetricError where the inputs are impossible for it."""


@dataclass(frozen=True, eq=False)
class Totals:
    """The sums of each group, in the form of as many draws (a `Draw`)."""

    view: View

    def sums(self, role: str) -> Array:
        """Add up an input in each group, [groups]."""
        return self.view.totals(role)

    def apart(self, role: str, label: Integers) -> Array:
        """Add up an input in each group for every label above 0 of the view's rows, [groups, labels]."""
        return _by_label(self.view, role, label, self.view.units.row_group, self.view.units.groups)

    def part(self, name: str) -> "Totals":
        """Narrow the sums to the inputs of one part of a composite."""
        return Totals(self.view.part(name))


@dataclass(frozen=True, eq=False)
class LeftOut:
    """The sums of each unit's group without that unit (a `Draw`), from which the jackknife follows."""

    view: View

    def sums(self, role: str) -> Array:
        """Add up an input in each group but for one unit, [units]."""
        return np.asarray(self.view.units.spread(self.view.totals(role)) - self.view.sums(role))

    def apart(self, role: str, label: Integers) -> Array:
        """Add up an input in each group but for one unit, for every label above 0 of the view's rows."""
        units = self.view.units
        whole = Totals(self.view).apart(role, label)[units.group_of]
        return np.asarray(whole - _by_label(self.view, role, label, units.of_row, units.count))

    def part(self, name: str) -> "LeftOut":
        """Narrow the sums to the inputs of one part of a composite."""
        return LeftOut(self.view.part(name))


def _by_label(view: View, role: str, label: Integers, of_row: Integers, count: int) -> Array:
    labels = int(label.max(initial=0)) + 1
    return added_up(of_row * labels + label, view.values(role), count * labels).reshape(count, labels)[:, 1:]


def jackknife(
    estimator: "Estimator", view: View, counts: NDArray[np.bool_], scale: Callable[[Array], Array] = np.asarray
) -> tuple[Array, Array]:
    """Leave out one unit after the other (Quenouille 1956, Tukey 1958).

    Args:
        estimator: What is a function of sums.
        view: Its inputs.
        counts: Which units count, [units].
        scale: On which scale it is computed.

    Returns:
        What each unit adds to the error, [units], and the bias, [groups].
    """
    spread = view.units.spread
    with np.errstate(all="ignore"):
        value, without = scale(estimator.drawn(Totals(view))), scale(estimator.drawn(LeftOut(view)))
    apart = np.where(counts & ~np.isnan(without), without - spread(value), 0.0)
    units = view.units.total(counts.astype(np.float64))
    with np.errstate(all="ignore"):
        mean = view.units.total(apart) / units
        influence = np.where(counts, spread(mean) - apart, 0.0) * spread(np.sqrt((units - 1) / units))
    return np.where(np.isfinite(influence), influence, 0.0), np.nan_to_num((units - 1) * mean)


def estimated(estimator: Estimator, view: View) -> Estimate:
    """Estimate in each group, once for all estimators that compute the same from the same columns."""
    return view.once(identity(estimator, view), lambda: estimator.estimate(view))


def identity(estimator: Estimator, view: View) -> tuple[object, ...]:
    """Build the key of an estimate: the kind of estimator, its columns, and what else it is declared with."""
    declared = [getattr(estimator, each.name) for each in fields(estimator)] if is_dataclass(estimator) else [estimator]
    plain = (float, int, str, NoneType)
    others = (each if isinstance(each, plain) else id(each) for each in declared if not isinstance(each, pl.Expr))
    return type(estimator), view.read(), *others


# Ratios of sums over units: how many independent trials they are worth, and their intervals.


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
    n_eff = n_eff * (Z / student(line.effective)) ** 2 / line.stratified
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
        return counts(line.value, squares * line.stratified / below.total**2 / mean, line.effective)


def effective_rows(view: View, line: Linearised, n: Array) -> Array:
    """Divide n by the design effect: the variance between units over that between rows, or as of equal rows."""
    if line.single.all():
        return np.where(n > 0, n / line.stratified, np.nan)
    below = line.below
    with np.errstate(all="ignore"):
        between_rows = below.row_total / (below.row_total - 1) * _squares_of_rows(view, line.value) / below.total**2
        effect = line.variance / between_rows
        alike = below.row_squares / below.row_total
        effect = np.where(np.isfinite(effect) & (line.variance > 0), effect, alike)
        return np.where(line.single, n / line.stratified, n / effect) + 0 * line.value


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


# Statistics that are functions of sums and no ratio of them, like correlations: the jackknife over units.


Sums = Mapping[str, Array]
"""The sums by name, all of one shape."""


@dataclass(frozen=True, eq=False)
class Jackknife(Estimator):
    """A statistic between -1 and 1 of sums over rows, with the interval of the jackknife on Fisher's scale.

    Attributes:
        function: From the sums to the statistic, element by element; NaN where it is undefined.
        sums: What each row contributes to each sum; a null contributes nothing.
        n: What each row contributes to the denominator, which is kept where the statistic is undefined for want of
            variation.
    """

    counted: ClassVar[frozenset[str]] = frozenset({"n"})
    function: Callable[[Sums], Array]
    sums: Mapping[str, pl.Expr]
    n: pl.Expr

    @override
    def inputs(self) -> Mapping[str, pl.Expr]:
        return {f"sum {name}": expression for name, expression in self.sums.items()} | {"n": self.n}

    @override
    def drawn(self, draw: Draw) -> Array:
        return self._evaluate({name: draw.sums(f"sum {name}") for name in self.sums})

    @override
    def estimate(self, view: View) -> Estimate:
        value = self.drawn(Totals(view))
        counts, units = view.sums("n") != 0, view.counting("n")
        influence, _ = jackknife(self, view, counts)
        variance = view.units.total(influence**2) * view.units.stratified(influence, counts)
        se = np.where(np.isnan(value) | (units < 3), np.nan, np.sqrt(variance))
        low, high = correlation(value, se, units)
        n = view.totals("n")
        n_eff = np.where(n > 0, units, np.nan)
        return Estimate(value, n, units, n_eff, se, low, high, units, lambda: influence)

    def _evaluate(self, sums: Sums) -> Array:
        with np.errstate(all="ignore"):
            result = np.asarray(self.function(sums), dtype=np.float64)
        return np.where(np.isfinite(result), result, np.nan)
