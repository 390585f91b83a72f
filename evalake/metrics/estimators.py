"""Estimators of one quantity: proportions, means, ratios, counts, totals, quantiles, maxima.

Each says which columns it reads (`inputs`), what follows from sums of them (`value`), and what that estimates in every
group of a slice (`estimate`). What is missing leaves the denominator: it is never a 0.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np
import polars as pl
from typing_extensions import override

from evalake.core.errors import MetricError
from evalake.metrics.columns import ordered
from evalake.metrics.estimator import (
    LEAST_WEIGHT,
    Draw,
    Estimate,
    Estimator,
    bounded,
    effective_rows,
    effective_size,
    every_row,
    mean_of_counts,
    quotient,
)
from evalake.metrics.intervals import Array, Integers, Z, above_zero, student, student_t, wilson
from evalake.metrics.units import Linearised, Units, View


class Quotient(Estimator):
    """What is the sum of one input over that of another: of the inputs `ratio`, numerator first."""

    ratio: ClassVar[tuple[str, str]] = ("numerator", "denominator")

    @override
    def drawn(self, draw: Draw) -> Array:
        above, below = self.ratio
        return quotient(draw.sums(above), draw.sums(below))


@dataclass(frozen=True, eq=False)
class Rate(Quotient):
    """A proportion: of the rows that count, or of what rows count (findings, tokens), the share that succeeded.

    Rows count where both expressions are conditions: where `of` is true and `successes` is not null. Where both are
    whole numbers, the value is the sum of `successes` over the sum of `of`. se = sqrt(p(1-p)/(n-1)) where every unit
    has one row, between units otherwise; the interval is Wilson's at `n_eff`. `undecided` is how many further trials
    of a row nobody decided: they bound the value (`evalake.metrics.limits`).
    """

    ratio: ClassVar[tuple[str, str]] = ("successes", "of")
    counted: ClassVar[frozenset[str]] = frozenset(ratio)
    successes: pl.Expr
    of: pl.Expr = field(default_factory=every_row)
    undecided: pl.Expr | None = field(default=None, kw_only=True)

    @override
    def inputs(self) -> Mapping[str, pl.Expr]:
        counts = self.of.cast(pl.Int64) > 0
        return {
            "successes": pl.when(counts).then(self.successes),
            "of": pl.when(self.successes.is_not_null()).then(self.of),
        }

    @override
    def estimate(self, view: View) -> Estimate:
        line = view.ratio("successes", "of")
        k, n, p = line.total, line.below.total, line.value
        if np.any((k < 0) | (k > n)):
            raise MetricError("it counts more successes than units, or fewer than none")
        n_eff = effective_size(line, 0.0, 1.0, np.ones_like(p))
        n_eff = np.where(line.below.one_each, n, np.minimum(n_eff, n)) / line.stratified
        with np.errstate(all="ignore"):
            recorded = np.where(n >= 2, np.sqrt(p * (1 - p) * line.stratified / (n - 1)), np.nan)
            se = np.where(line.single, recorded, np.sqrt(line.variance))
        low, high = wilson(np.where(p >= 1, n_eff, p * n_eff), n_eff)
        n_eff = np.where(n > 0, n_eff, np.nan)
        return Estimate(p, n, line.count, n_eff, se, low, high, line.count, lambda: line.influence)


@dataclass(frozen=True, eq=False)
class Ratio(Quotient):
    """Sum of `numerator` over sum of `denominator`, which lies between `low` and `high` in each row, too.

    For ratios that are no proportions (findings by worth, F-measures). n is the sum of `rows`, or of the denominator.
    `heaviest` is the denominator of a row of value `high`, where such rows weigh more than others; `undecided` is as
    that of a `Rate`.
    """

    counted: ClassVar[frozenset[str]] = frozenset({"rows"})
    numerator: pl.Expr
    denominator: pl.Expr
    rows: pl.Expr | None = None
    low: float = 0.0
    high: float = 1.0
    heaviest: float | None = None
    undecided: pl.Expr | None = field(default=None, kw_only=True)

    @override
    def inputs(self) -> Mapping[str, pl.Expr]:
        given = {"numerator": self.numerator, "denominator": self.denominator}
        return given if self.rows is None else given | {"rows": self.rows}

    @override
    def estimate(self, view: View) -> Estimate:
        counting = "denominator" if self.rows is None else "rows"
        n, units = view.totals(counting), view.counting(counting)
        return ratio_estimate(view, self.low, self.high, n, units, self.heaviest)


@dataclass(frozen=True, eq=False)
class Mean(Quotient):
    """The mean over the rows `where` that have a value between `low` and `high`.

    se = sd/sqrt(n) (ddof 1) where every unit has one row, between units otherwise. The interval stays between `low`
    and `high`; with neither it is Student's. `complete` makes the mean null if any row `where` lacks the value: the
    mean of the known prices is not the price.
    """

    counted: ClassVar[frozenset[str]] = frozenset({"where"})
    quantity: pl.Expr
    where: pl.Expr = field(default_factory=every_row)
    low: float = -np.inf
    high: float = np.inf
    complete: bool = False

    @override
    def inputs(self) -> Mapping[str, pl.Expr]:
        value = pl.when(self.where).then(self.quantity)
        inputs = {"numerator": value, "denominator": value.is_not_null()}
        return inputs | {"where": self.where} if self.complete else inputs

    @override
    def estimate(self, view: View) -> Estimate:
        n, units = view.totals("denominator"), view.counting("denominator")
        known = ratio_estimate(view, self.low, self.high, n, units)
        if not self.complete:
            return known
        rows = view.totals("where")
        numbers = ("value", "se", "ci_low", "ci_high")
        kept: dict[str, Any] = {name: np.where(n == rows, getattr(known, name), np.nan) for name in numbers}
        return replace(known, n=rows, units=units, fewest=np.minimum(known.fewest, units), **kept)


@dataclass(frozen=True, eq=False)
class Count(Estimator):
    """How many of the rows `among` meet the condition `of`; n is the number of rows `among`. No uncertainty."""

    counted: ClassVar[frozenset[str]] = frozenset({"of", "among"})
    of: pl.Expr
    among: pl.Expr = field(default_factory=every_row)

    @override
    def inputs(self) -> Mapping[str, pl.Expr]:
        return {"of": self.of.cast(pl.Boolean) & self.among.cast(pl.Boolean), "among": self.among}

    @override
    def drawn(self, draw: Draw) -> Array:
        return draw.sums("of")

    @override
    def estimate(self, view: View) -> Estimate:
        return Estimate.bare(view.totals("of"), view.totals("among"), view.counting("among"))


@dataclass(frozen=True, eq=False)
class Total(Estimator):
    """The sum of a value over the rows `where`, null if any of them has none; n is their number. No uncertainty."""

    counted: ClassVar[frozenset[str]] = frozenset({"where", "known"})
    quantity: pl.Expr
    where: pl.Expr = field(default_factory=every_row)

    @override
    def inputs(self) -> Mapping[str, pl.Expr]:
        value = pl.when(self.where).then(self.quantity)
        return {"value": value, "known": value.is_not_null(), "where": self.where}

    @override
    def drawn(self, draw: Draw) -> Array:
        return np.where(draw.sums("known") == draw.sums("where"), draw.sums("value"), np.nan)

    @override
    def estimate(self, view: View) -> Estimate:
        rows = view.totals("where")
        value = np.where(view.totals("known") == rows, view.totals("value"), np.nan)
        return Estimate.bare(value, rows, view.counting("where"))


class _OfOrder(Estimator):
    """What depends on the order of the values over the rows `where` that have one, and so is no function of sums."""

    quantity: pl.Expr
    where: pl.Expr

    @override
    def inputs(self) -> Mapping[str, pl.Expr]:
        value = pl.when(self.where).then(self.quantity)
        return {"value": value, "known": value.is_not_null()}

    @override
    def drawn(self, draw: Draw) -> Array:
        return np.full_like(draw.sums("known"), np.nan)


@dataclass(frozen=True, eq=False)
class Maximum(_OfOrder):
    """The largest value over the rows `where` that have one. No uncertainty: a sample does not bound what it lacks."""

    quantity: pl.Expr
    where: pl.Expr = field(default_factory=every_row)

    @override
    def estimate(self, view: View) -> Estimate:
        return Estimate.bare(view.largest("value"), view.totals("known"), view.counting("known"))


@dataclass(frozen=True, eq=False)
class Quantile(_OfOrder):
    """The quantile `q`, by linear interpolation (inclusive), over the rows `where` that have a value.

    The interval is the distribution-free one: order statistics around rank n q, from the normal limit of the number of
    values below the true quantile (Conover 1999, section 3.2), of as many independent rows as `n_eff`, with Student's
    quantile where units have several. It is null where a sample of n cannot bound that quantile (the 99th percentile
    needs about 400 values). se is its width over 2 × 1.96 (Woodruff 1952).
    """

    quantity: pl.Expr
    q: float
    where: pl.Expr = field(default_factory=every_row)

    def __post_init__(self) -> None:
        if not 0 <= self.q <= 1:
            raise MetricError(f"A quantile lies between 0 and 1, not at {self.q}.")

    @override
    def estimate(self, view: View) -> Estimate:
        return self.with_limits(view)

    def with_limits(self, view: View, error: float | None = None) -> Estimate:
        """Estimate it with the interval, or with limits that each leave it out in less than half of `error`.

        The normal limit of a number of values is off by less than one: limits are one value further.
        """
        z, further = (Z, 0) if error is None else (NormalDist().inv_cdf(1 - error / 2), 1)
        n = view.totals("known")
        ascending, starts = _in_order(view)

        def order_statistic(rank: Array) -> Array:
            inside = (rank >= 1) & (rank <= n)
            at = np.where(inside, starts + rank - 1, 0).astype(np.int64)
            return np.where(inside, ascending[at], np.nan) if len(ascending) else np.full(len(n), np.nan)

        position = 1 + (n - 1) * self.q
        below, above = order_statistic(np.floor(position)), order_statistic(np.ceil(position))
        value = below + (position - np.floor(position)) * (above - below)
        not_above = view.values("value") <= value[view.units.row_group]
        counted = not_above & (view.values("known") != 0)
        line = Linearised(view.units.by_unit(counted.astype(np.float64)), view.over("known"))
        n_eff = np.where(line.single, n, np.minimum(effective_size(line, 0.0, 1.0, np.ones_like(n)), n))
        with np.errstate(all="ignore"):
            t = np.where(line.single, z, np.fmax(student(line.count, 2 * NormalDist().cdf(z) - 1), z))
            reach = t * np.sqrt(self.q * (1 - self.q) / n_eff) * n
            low = order_statistic(np.ceil(n * self.q - reach) - further)
            high = order_statistic(np.ceil(n * self.q + reach) + further)
            bounded = ~np.isnan(low + high)
            low, high = np.where(bounded, low, np.nan), np.where(bounded, high, np.nan)
            se = (high - low) / (2 * Z)
            density = se / np.sqrt(line.variance)

        def influence() -> Array:
            return np.asarray(-line.influence * view.units.spread(np.where(np.isfinite(density), density, 0.0)))

        n_eff = np.where(n > 0, n_eff, np.nan)
        return Estimate(value, n, line.count, n_eff, se, low, high, line.count, influence)


def _in_order(view: View) -> tuple[Array, Integers]:
    """Sort the known values of all groups, ascending in each, and find where each group's begin."""

    def sort() -> tuple[Array, Integers]:
        known = view.values("known") != 0
        group, values = view.units.row_group[known], view.values("value")[known]
        starts = np.searchsorted(group, np.arange(view.units.groups))
        ascending = np.argsort(values)
        return values[ascending[ordered(group[ascending])]], starts

    return view.once(("in order", view.named("value"), view.named("known")), sort)


LARGEST = 0.05
"""The share of units whose amounts tell whether a mean rests on few of them."""

MOST_OF_LARGEST = 1 / 6
"""Where the largest make a larger share of the sum, the interval of their mean may be too narrow (docs/coverage.md)."""

FROM_UNITS = 100
"""The fewest units for a reliable mean of amounts: a smaller sample can miss the largest amounts."""


def share_of_largest(units: Units, amounts: Array) -> Array:
    """Compute which share of each group's sum the largest 5 % of its units make, [groups]; one unit at least."""
    order = np.lexsort((-amounts, units.group_of))
    counts = np.bincount(units.group_of, minlength=units.groups)
    place = np.arange(len(order)) - np.searchsorted(units.group_of, units.group_of)
    is_large = place < np.ceil(LARGEST * counts)[units.group_of]
    return quotient(units.total(np.where(is_large, amounts[order], 0.0)), units.total(amounts))


def is_amount(estimator: Estimator, view: View) -> bool:
    """Tell whether it is a mean of amounts without an upper bound, like seconds or dollars, and not of counts."""
    if not isinstance(estimator, Mean) or estimator.low != 0 or np.isfinite(estimator.high):
        return False
    return not view.columns.is_whole(view.named("numerator"))


def is_share_of_rows(estimator: Estimator, view: View) -> bool:
    """Tell whether it is a proportion of rows, whose inputs are conditions."""
    return isinstance(estimator, Rate) and all(view.columns.is_condition(view.named(role)) for role in Rate.ratio)


def ratio_estimate(
    view: View, low: float, high: float, n: Array, units: Array, heaviest: float | None = None
) -> Estimate:
    """Estimate the ratio of the inputs `numerator` and `denominator`, in its range."""
    line = view.ratio("numerator", "denominator")
    value = line.value
    se = np.sqrt(line.variance)
    fewest = line.count
    if np.isfinite(high - low):
        ends = bounded(line, low, high, LEAST_WEIGHT, heaviest)
    elif low == 0:
        whole_numbers = view.columns.is_whole(view.named("numerator"))
        if not whole_numbers:
            few = share_of_largest(view.units, line.numerator) > MOST_OF_LARGEST
            fewest = np.where(few | (line.count < FROM_UNITS), 0.0, line.count)
        ends = mean_of_counts(view, line) if whole_numbers else above_zero(value, se, line.effective)
        ends = (ends[0], np.where(se > 0, ends[1], np.nan)) if not np.isnan(ends[1]).all() else ends
    else:
        ends = student_t(value, se, line.effective)
    defined = ~np.isnan(value)
    n, units = np.where(defined, n, 0.0), np.where(defined, units, 0.0)
    return Estimate(value, n, units, effective_rows(view, line, n), se, *ends, fewest, lambda: line.influence)


# Proportions of rows that stand for unequal numbers of others.


ALIKE = 1e-9
"""Weights that differ by less, as a share of them, are the same."""


@dataclass(frozen=True, eq=False)
class WeightedRate(Rate):
    """A proportion of rows that stand for unequal numbers of others, like those drawn with unequal chances.

    The sum of the successes' weights over the sum of weights (Hájek 1971), among the rows that `Rate` counts. Where all
    rows of a group weigh the same, it is `Rate`. n is the rows; `n_eff` shrinks with the spread of the weights.
    """

    ratio: ClassVar[tuple[str, str]] = ("weighted", "weight")
    weight: pl.Expr = field(default_factory=lambda: pl.lit(1.0))

    @override
    def inputs(self) -> Mapping[str, pl.Expr]:
        inputs = super().inputs()
        counted = inputs["successes"].is_not_null() & inputs["of"].cast(pl.Boolean)
        weight = pl.when(counted).then(self.weight.cast(pl.Float64))
        return {**inputs, "weighted": weight * self.successes.cast(pl.Float64), "weight": weight}

    @override
    def estimate(self, view: View) -> Estimate:
        alike = super().estimate(view)
        line = view.ratio("weighted", "weight")
        p = line.value
        low, high = bounded(line, 0.0, 1.0, LEAST_WEIGHT)
        n_eff = np.minimum(effective_size(line, 0.0, 1.0, np.ones_like(p)), alike.n)
        weight, whole = view.values("weight"), line.below.total
        mean = quotient(whole, alike.n)[view.units.row_group]
        apart = np.where(weight != 0, np.abs(weight - mean), 0.0)
        unequal: Array = np.asarray(view.units.total_of_rows(np.nan_to_num(apart)) > ALIKE * whole)  # [groups]

        def either(weighted: Array, same: Array) -> Array:
            return np.where(unequal, weighted, same)

        return replace(
            alike,
            value=either(p, alike.value),
            n_eff=either(n_eff, alike.n_eff),
            se=either(np.sqrt(line.variance), alike.se),
            ci_low=either(low, alike.ci_low),
            ci_high=either(high, alike.ci_high),
            make_influence=lambda: np.where(view.units.spread(unequal), line.influence, alike.influence),
        )
