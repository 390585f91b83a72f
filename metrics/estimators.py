"""Estimators that follow from a few numbers per group: rates, counts, totals, means, quantiles, maxima.

Each says which columns it reads (`inputs`), how Polars aggregates them within a group (`aggregates`), of which it needs
moments (`summed`), and what follows from both (`estimate`), for all groups at once. What is missing leaves the
denominator: it is never a 0.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import numpy as np
import polars as pl

from contracts.errors import MetricError
from metrics.columns import Moments
from metrics.intervals import Array, Z, student_t, wilson

Column = Callable[[str], pl.Expr]
"""From the name of an input to the column that holds it."""


def every_row() -> pl.Expr:
    """The condition that every row meets."""
    return pl.lit(True)


@dataclass(frozen=True, eq=False)
class Estimate:
    """One metric in many groups; arrays of shape [groups], NaN where there is no such number."""

    value: Array
    n: Array
    se: Array
    ci_low: Array
    ci_high: Array

    @classmethod
    def bare(cls, value: Array, n: Array) -> "Estimate":
        """A value without uncertainty, as of a count, which is not an estimate of anything beyond itself."""
        unknown = np.full(len(n), np.nan)
        return cls(np.where(n > 0, value, np.nan), n, unknown, unknown, unknown)


class Summary(Protocol):
    """What every estimator of this module provides."""

    counted: ClassVar[frozenset[str]]
    """Inputs that must be Boolean or whole numbers."""
    summed: ClassVar[tuple[str, ...]]
    """Inputs of which it needs the moments."""

    def inputs(self) -> Mapping[str, pl.Expr]:
        """What it reads of each row, by name."""

    def aggregates(self, column: Column) -> Mapping[str, pl.Expr]:
        """What Polars adds up within a group, by name."""

    def estimate(self, aggregated: Mapping[str, pl.Series], moments: Mapping[str, Moments]) -> Estimate:
        """From the aggregates [groups] and the moments of `summed` to the metric in each group.

        Raises MetricError where they cannot be what the metric is of.
        """


def true_rows(condition: pl.Expr) -> pl.Expr:
    """How many of a group's rows meet the condition."""
    return condition.cast(pl.Boolean).sum()


def numbers(series: pl.Series) -> Array:
    """The series as floating-point numbers, NaN for null."""
    return series.cast(pl.Float64).fill_null(np.nan).to_numpy()


@dataclass(frozen=True, eq=False)
class Rate:
    """A proportion: of the units that count, the share that succeeded.

    Units are rows when both expressions are conditions: a row counts where `of` is true and `successes` is not null.
    They are what rows count (findings, tokens) when both are whole numbers: sum of `successes` over sum of `of`.
    se = sqrt(p(1-p)/(n-1)), interval Wilson, whichever the unit. That takes units for independent; where units of one
    row hang together and the interval matters more than the convention, `composite.ratio` resamples whole rows.
    """

    counted: ClassVar[frozenset[str]] = frozenset({"successes", "of"})
    summed: ClassVar[tuple[str, ...]] = ()
    successes: pl.Expr
    of: pl.Expr = field(default_factory=every_row)

    def inputs(self) -> Mapping[str, pl.Expr]:
        return {"successes": self.successes, "of": self.of}

    def aggregates(self, column: Column) -> Mapping[str, pl.Expr]:
        successes, of = column("successes").cast(pl.Int64), column("of").cast(pl.Int64)
        return {
            "k": pl.when(of > 0).then(successes).sum(),
            "n": pl.when(successes.is_not_null()).then(of).sum(),
        }

    def estimate(self, aggregated: Mapping[str, pl.Series], moments: Mapping[str, Moments]) -> Estimate:
        k, n = numbers(aggregated["k"]), numbers(aggregated["n"])
        if np.any((k < 0) | (k > n)):
            raise MetricError("it counts more successes than units, or fewer than none")
        with np.errstate(divide="ignore", invalid="ignore"):
            p = k / n
            se = np.where(n >= 2, np.sqrt(p * (1 - p) / (n - 1)), np.nan)
        return Estimate(p, n, se, *wilson(k, n))


@dataclass(frozen=True, eq=False)
class Count:
    """How many of the rows `among` meet the condition `of`; n is the number of rows `among`. No uncertainty."""

    counted: ClassVar[frozenset[str]] = frozenset({"of", "among"})
    summed: ClassVar[tuple[str, ...]] = ()
    of: pl.Expr
    among: pl.Expr = field(default_factory=every_row)

    def inputs(self) -> Mapping[str, pl.Expr]:
        return {"of": self.of, "among": self.among}

    def aggregates(self, column: Column) -> Mapping[str, pl.Expr]:
        both = column("of").cast(pl.Boolean) & column("among").cast(pl.Boolean)
        return {"value": true_rows(both), "n": true_rows(column("among"))}

    def estimate(self, aggregated: Mapping[str, pl.Series], moments: Mapping[str, Moments]) -> Estimate:
        return Estimate.bare(numbers(aggregated["value"]), numbers(aggregated["n"]))


@dataclass(frozen=True, eq=False)
class Total:
    """The sum of a value over the rows `where`, null if any of them has none; n is their number. No uncertainty."""

    counted: ClassVar[frozenset[str]] = frozenset({"where"})
    summed: ClassVar[tuple[str, ...]] = ("value",)
    value: pl.Expr
    where: pl.Expr = field(default_factory=every_row)

    def inputs(self) -> Mapping[str, pl.Expr]:
        return {"value": pl.when(self.where).then(self.value), "where": self.where}

    def aggregates(self, column: Column) -> Mapping[str, pl.Expr]:
        return {"rows": true_rows(column("where"))}

    def estimate(self, aggregated: Mapping[str, pl.Series], moments: Mapping[str, Moments]) -> Estimate:
        value, rows = moments["value"], numbers(aggregated["rows"])
        return Estimate.bare(np.where(value.n == rows, value.total, np.nan), rows)


@dataclass(frozen=True, eq=False)
class Mean:
    """The mean over the rows `where` that have a value; se = sd/sqrt(n) (ddof 1), interval Student t.

    `complete` makes it null if any row `where` lacks the value: the mean of the known prices is not the price.
    """

    counted: ClassVar[frozenset[str]] = frozenset({"where"})
    summed: ClassVar[tuple[str, ...]] = ("value",)
    value: pl.Expr
    where: pl.Expr = field(default_factory=every_row)
    complete: bool = False

    def inputs(self) -> Mapping[str, pl.Expr]:
        return {"value": pl.when(self.where).then(self.value), "where": self.where}

    def aggregates(self, column: Column) -> Mapping[str, pl.Expr]:
        return {"rows": true_rows(column("where"))}

    def estimate(self, aggregated: Mapping[str, pl.Series], moments: Mapping[str, Moments]) -> Estimate:
        value, rows = moments["value"], numbers(aggregated["rows"])
        mean, sd, n = value.mean, value.deviation, value.n
        if self.complete:
            known = n == rows
            mean, sd, n = np.where(known, mean, np.nan), np.where(known, sd, np.nan), rows
        with np.errstate(divide="ignore", invalid="ignore"):
            se = np.where(n >= 2, sd / np.sqrt(n), np.nan)
        return Estimate(mean, n, se, *student_t(mean, sd, n))


@dataclass(frozen=True, eq=False)
class Quantile:
    """The quantile `q`, by linear interpolation (inclusive), over the rows `where` that have a value.

    The interval is the distribution-free one: order statistics around rank n q, from the normal limit of the binomial
    number of values below the true quantile (Conover 1999, section 3.2). It is null where a sample of n cannot bound
    that quantile (the 99th percentile needs about 400 values). se is its width over 2 × 1.96 (Woodruff 1952).
    """

    counted: ClassVar[frozenset[str]] = frozenset()
    summed: ClassVar[tuple[str, ...]] = ()
    value: pl.Expr
    q: float
    where: pl.Expr = field(default_factory=every_row)

    def __post_init__(self) -> None:
        if not 0 <= self.q <= 1:
            raise MetricError(f"A quantile lies between 0 and 1, not at {self.q}.")

    def inputs(self) -> Mapping[str, pl.Expr]:
        return {"value": pl.when(self.where).then(self.value)}

    def aggregates(self, column: Column) -> Mapping[str, pl.Expr]:
        return {"values": column("value").cast(pl.Float64).drop_nulls().sort().implode()}

    def estimate(self, aggregated: Mapping[str, pl.Series], moments: Mapping[str, Moments]) -> Estimate:
        values = aggregated["values"]
        n = numbers(values.list.len())

        def order_statistic(rank: Array) -> Array:
            index = pl.Series(np.where((rank >= 1) & (rank <= n), rank - 1, n), dtype=pl.Int64)
            return numbers(values.list.get(index, null_on_oob=True))

        position = 1 + (n - 1) * self.q
        below, above = order_statistic(np.floor(position)), order_statistic(np.ceil(position))
        value = below + (position - np.floor(position)) * (above - below)
        reach = Z * np.sqrt(n * self.q * (1 - self.q))
        low, high = order_statistic(np.ceil(n * self.q - reach)), order_statistic(np.ceil(n * self.q + reach))
        bounded = ~np.isnan(low + high)
        low, high = np.where(bounded, low, np.nan), np.where(bounded, high, np.nan)
        return Estimate(value, n, (high - low) / (2 * Z), low, high)


@dataclass(frozen=True, eq=False)
class Maximum:
    """The largest value over the rows `where` that have one. No uncertainty: a sample does not bound what it lacks."""

    counted: ClassVar[frozenset[str]] = frozenset()
    summed: ClassVar[tuple[str, ...]] = ()
    value: pl.Expr
    where: pl.Expr = field(default_factory=every_row)

    def inputs(self) -> Mapping[str, pl.Expr]:
        return {"value": pl.when(self.where).then(self.value)}

    def aggregates(self, column: Column) -> Mapping[str, pl.Expr]:
        return {"value": column("value").max(), "n": column("value").count()}

    def estimate(self, aggregated: Mapping[str, pl.Series], moments: Mapping[str, Moments]) -> Estimate:
        return Estimate.bare(numbers(aggregated["value"]), numbers(aggregated["n"]))
