"""Macro averages: the unweighted mean of the rates of labels."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import polars as pl
from typing_extensions import override

from metrics.columns import added_up
from metrics.composite import mean_defined
from metrics.estimator import Draw, Estimate, Estimator
from metrics.estimators import Rate
from metrics.intervals import Array, Z, student
from metrics.ratios import quotient
from metrics.units import View

TIE = 1e-9
"""A ratio of variances this near to 1 is 1 but for rounding: rates of separate clusters vary independently."""


@dataclass(frozen=True, eq=False)
class MacroAverage(Estimator):
    """The unweighted mean of the rates of the labels `by`; rows without a label are left out. n is the rows `of`."""

    counted: ClassVar[frozenset[str]] = frozenset({"successes", "of"})
    labels: ClassVar[frozenset[str]] = frozenset({"by"})
    successes: pl.Expr
    of: pl.Expr
    by: pl.Expr

    @override
    def inputs(self) -> Mapping[str, pl.Expr]:
        of = self.of & self.by.is_not_null()
        return {**Rate(self.successes, of).inputs(), "by": self.by}

    @override
    def drawn(self, draw: Draw) -> Array:
        label = draw.view.ranks("by")
        return mean_defined(quotient(draw.apart("successes", label), draw.apart("of", label)))

    @override
    def estimate(self, view: View) -> Estimate:
        finer, group, unit = view.apart(view.named("by"), lambda: view.ranks("by"))
        rate = Rate(self.successes, self.of).estimate(finer)
        counted = (rate.n > 0).astype(np.float64)
        groups = view.units.groups

        def total(values: Array) -> Array:
            return added_up(group, np.where(counted > 0, values, 0.0), groups)

        labels = total(counted)
        value = quotient(total(rate.value), labels)
        share = quotient(np.ones(groups), labels)
        influence = added_up(unit, rate.influence, view.units.count) * view.units.spread(share)
        own = finer.units.total(rate.influence**2)
        seen = np.where(own > 0, own, 0.0)
        guessed = np.where(np.isnan(rate.se), ((rate.ci_high - rate.ci_low) / (2 * Z)) ** 2, 0.0)
        together, apart = view.units.total(influence**2), total(seen) * share**2
        clusters = view.counting("of")
        # For clusters with rows under several labels: where these cancel, one unseen is assumed whose rows do not.
        shared = np.where(
            apart > 0, np.maximum(quotient(together, apart), quotient(np.ones(groups), clusters + 1)), 1.0
        )
        noise = self._noise(rate, value[group])
        reach = self._reach(clusters, shared) * share
        down = np.sqrt(total(np.maximum(rate.value - rate.ci_low, noise) ** 2)) * reach
        up = np.sqrt(total(np.maximum(rate.ci_high - rate.value, noise) ** 2)) * reach
        fewest = np.full(groups, np.inf)
        np.minimum.at(fewest, group, np.where(counted > 0, rate.units, np.inf))
        n = view.totals("of")
        return Estimate(
            value,
            n,
            clusters,
            np.where(n > 0, total(rate.n_eff), np.nan),
            np.sqrt(together + total(guessed) * share**2) + 0 * value,
            np.maximum(value - down, 0.0),
            np.minimum(value + up, 1.0),
            np.where(n > 0, np.nan_to_num(fewest, posinf=0.0), 0.0),
            lambda: influence,
        )

    @staticmethod
    def _reach(units: Array, shared: Array) -> Array:
        """Compute the factor for rates that vary together, by Student's quantile, as few clusters tell little."""
        together = np.abs(shared - 1) > TIE
        return np.sqrt(shared) * np.where(together, np.fmax(1.0, np.nan_to_num(student(units), nan=1.0) / Z), 1.0)

    @staticmethod
    def _noise(rate: Estimate, whole: Array) -> Array:
        """Compute how far each label's rate reaches either way if it is near the mean of all.

        Wilson's interval of a rate of 0 or 1 reaches one way only, which is too narrow for many small labels together.
        """
        with np.errstate(all="ignore"):
            likely = (rate.value * rate.n_eff + 2 * whole) / (rate.n_eff + 2)
            return np.asarray(Z * np.sqrt(likely * (1 - likely) / rate.n_eff))
