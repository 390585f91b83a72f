"""Proportions of rows that stand for unequal numbers of others."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import polars as pl
from typing_extensions import override

from metrics.estimator import Estimate
from metrics.estimators import Rate
from metrics.intervals import Array
from metrics.ratios import LEAST_WEIGHT, bounded, effective_size, quotient
from metrics.units import View

ALIKE = 1e-9
"""Weights that differ by less, as a share of them, are the same."""


@dataclass(frozen=True, eq=False)
class WeightedRate(Rate):
    """A proportion of rows that stand for unequal numbers of others, such as those drawn with unequal chances.

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
        unequal = self._unequal(view, line.below.total, alike.n)

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

    @staticmethod
    def _unequal(view: View, whole: Array, n: Array) -> Array:
        """Tell whether a group's rows weigh differently, [groups]."""
        weight = view.values("weight")
        mean = quotient(whole, n)[view.units.row_group]
        apart = np.where(weight != 0, np.abs(weight - mean), 0.0)
        return np.asarray(view.units.total_of_rows(np.nan_to_num(apart)) > ALIKE * whole)
