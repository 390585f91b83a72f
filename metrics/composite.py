"""Composite metrics: everything that is a function of sums over samples, from a ratio to a weighted index."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import polars as pl

from contracts.errors import MetricError
from metrics.estimators import every_row
from metrics.intervals import Array, Integers, percentile

Sums = Mapping[str, Array]
"""The sums by name, of shape [draws]; in a composite with `by` [draws, labels], and [draws, 1] where not told apart."""


@dataclass(frozen=True, eq=False)
class Composite:
    """A statistic `function` of sums over samples, with a percentile bootstrap over samples.

    sums      what each row contributes to each sum; a null contributes nothing
    function  from the sums to the statistic, shape [draws]. It is called on the actual sums (draws = 1) for the value,
              and on resampled ones for the interval; it may divide freely, as NaN and infinite mean undefined. A named
              function, or `functools.partial` or a frozen dataclass around one where it has parameters.
    n         what each row contributes to the denominator; with a total below 2 there is no se and no interval
    by        a label: every sum becomes one sum per label that occurs in the group (rows without one have a label of
              their own, the first), as for macro averages and calibration bins
    apart     the sums that are told apart `by` it, all unless given
    bins      makes the labels from the group's own data instead: (values of `by`, how many rows have each) -> bin
              numbers; equal values must get equal bins. Bins stay fixed while rows are resampled.
    strata    rows are resampled within each stratum, so that its size is fixed as it was by design
    standard_error  a formula from the actual sums where one is prescribed; otherwise the draws' standard deviation
    explains_variation  the statistic is also undefined where nothing varies (kappas, correlations): n is then kept,
              whereas otherwise an undefined statistic has an empty denominator, n = 0
    """

    counted: ClassVar[frozenset[str]] = frozenset({"n"})
    function: Callable[[Sums], Array]
    sums: Mapping[str, pl.Expr]
    n: pl.Expr = field(default_factory=every_row)
    by: pl.Expr | None = None
    apart: tuple[str, ...] | None = None
    bins: Callable[[Array, Array], Integers] | None = None
    strata: pl.Expr | None = None
    standard_error: Callable[[Sums], Array] | None = None
    explains_variation: bool = False

    def __post_init__(self) -> None:
        if not self.sums:
            raise MetricError("A composite metric needs at least one sum.")
        if self.bins is not None and self.by is None:
            raise MetricError("A composite metric with bins needs the values to bin: give `by`.")

    def inputs(self) -> Mapping[str, pl.Expr]:
        """What it reads of each row, by name: its sums as `sum NAME`, `n`, and the labels it has."""
        given = {"n": self.n, "by": self.by, "strata": self.strata}
        return {f"sum {k}": v for k, v in self.sums.items()} | {k: v for k, v in given.items() if v is not None}

    def told_apart(self, name: str) -> bool:
        """Whether there is one of this sum for each label."""
        return self.by is not None and (self.apart is None or name in self.apart)

    def evaluate(self, function: Callable[[Sums], Array], sums: Sums) -> Array:
        """`function` of the sums: [draws], NaN where undefined."""
        with np.errstate(all="ignore"):
            result = np.asarray(function(sums), dtype=np.float64)
        draws = next(iter(sums.values())).shape[:1]
        if result.shape != draws:
            raise MetricError(f"its function must return one number per draw, {draws}, not {result.shape}")
        return np.where(np.isfinite(result), result, np.nan)


def values(composites: Sequence[Composite], actual: Sums, total: float) -> Array:
    """Value and n of composites of the same sums, [composites, 2]: n is the total, 0 where the value is undefined."""
    known = np.full((len(composites), 2), total)
    for row, composite in zip(known, composites, strict=True):
        row[0] = composite.evaluate(composite.function, actual)[0]
        if np.isnan(row[0]) and not composite.explains_variation:
            row[1] = 0.0
    return known


def has_interval(known: Array) -> bool:
    """Whether there is one, and so anything to draw, for any of `values`."""
    return bool((~np.isnan(known[:, 0]) & (known[:, 1] >= 2)).any())


def intervals(composites: Sequence[Composite], actual: Sequence[Sums], known: Array, draws: Array) -> Array:
    """Standard error and interval, [composites, 3], from each one's actual sums, `values` and draws."""
    spread = np.stack(percentile(draws), axis=1)
    for row, composite, sums in zip(spread, composites, actual, strict=True):
        if composite.standard_error is not None:
            row[0] = composite.evaluate(composite.standard_error, sums)[0]
    return np.where(np.isnan(known[:, :1]), np.nan, spread)


def mean_defined(values: Array) -> Array:
    """Mean over the last axis of what is defined (not NaN); NaN where nothing is."""
    defined = ~np.isnan(values)
    return np.asarray(np.where(defined, values, 0.0).sum(axis=-1) / defined.sum(axis=-1))


def _quotient(s: Sums) -> Array:
    return s["numerator"] / s["denominator"]


def ratio(numerator: pl.Expr, denominator: pl.Expr, n: pl.Expr | None = None) -> Composite:
    """Sum of `numerator` over sum of `denominator`, resampling whole rows.

    For ratios that are not proportions (findings per sample) or whose weights are not counts, and for proportions of
    units that hang together within a row. n is the denominator, unless given: a weighted ratio counts its rows.
    """
    return Composite(_quotient, {"numerator": numerator, "denominator": denominator}, n=denominator if n is None else n)


def _mean_of_rates(s: Sums) -> Array:
    return mean_defined(s["successes"] / s["of"])


def macro_average(successes: pl.Expr, of: pl.Expr, by: pl.Expr) -> Composite:
    """Unweighted mean of the rates of the labels `by`; rows without a label are left out. n is the rows `of`."""
    counted = of & by.is_not_null()
    return Composite(_mean_of_rates, {"successes": successes & counted, "of": counted}, n=counted, by=by)


def _population_std(s: Sums) -> Array:
    mean, mean_square = s["value"] / s["n"], s["square"] / s["n"]
    variance = mean_square - mean**2
    rounding = 1e-14 * mean_square
    return np.sqrt(np.where(variance > rounding, variance, 0.0) + 0 * mean)


def population_std(value: pl.Expr, where: pl.Expr | None = None) -> Composite:
    """The population's standard deviation (ddof 0) over the rows `where` that have a value.

    From sums of values and squares; a variance that is rounding error alone counts as none.
    """
    known = value.is_not_null() if where is None else where & value.is_not_null()
    values = pl.when(known).then(value).cast(pl.Float64)
    return Composite(_population_std, {"n": known, "value": values, "square": values**2}, n=known)
