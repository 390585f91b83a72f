"""Statistics that are functions of sums and no ratio of them, such as correlations: the jackknife over units."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import polars as pl
from typing_extensions import override

from metrics.estimator import Draw, Estimate, Estimator
from metrics.intervals import Array, correlation
from metrics.units import View

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
        totals = {name: view.totals(f"sum {name}") for name in self.sums}
        value = self._evaluate(totals)
        of_group = view.units.spread
        counts, units = view.sums("n") != 0, view.counting("n")
        without = self._evaluate({name: of_group(total) - view.sums(f"sum {name}") for name, total in totals.items()})
        apart = np.where(counts & ~np.isnan(without), without - of_group(value), 0.0)
        with np.errstate(all="ignore"):
            mean = view.units.total(apart) / units
            influence = np.where(counts, of_group(mean) - apart, 0.0) * of_group(np.sqrt((units - 1) / units))
        influence = np.where(np.isfinite(influence), influence, 0.0)
        se = np.where(np.isnan(value) | (units < 3), np.nan, np.sqrt(view.units.total(influence**2)))
        low, high = correlation(value, se, units)
        n = view.totals("n")
        n_eff = np.where(n > 0, units, np.nan)
        return Estimate(value, n, units, n_eff, se, low, high, units, lambda: influence)

    def _evaluate(self, sums: Sums) -> Array:
        with np.errstate(all="ignore"):
            result = np.asarray(self.function(sums), dtype=np.float64)
        return np.where(np.isfinite(result), result, np.nan)
