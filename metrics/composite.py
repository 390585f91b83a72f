"""Composite metrics: functions of several estimates, from a mean of two rates to a weighted index.

The interval combines those of the parts by how far the function moves when one part goes to its limit, and by how the
parts hang together (MOVER, Zou and Donner 2008). So it keeps what the parts' intervals are good at: small samples,
values near the ends of the range, clusters. A composite is as reliable as its least reliable part.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations_with_replacement
from typing import ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray
from typing_extensions import override

from core.errors import MetricError
from metrics.columns import added_up
from metrics.estimators import Draw, Estimate, Estimator, Rate, every_row
from metrics.intervals import Array, Integers, Z, combined, modified_wilson, student
from metrics.ratios import quotient
from metrics.units import Units, View

FEWEST_UNITS = 5
"""Below so many units, the other values of a part than those seen are as likely for a composite."""

TIE = 1e-9
"""Rates of clusters apart vary together as much as apart, but for rounding."""

STEPS = 4
"""Of the search for how far parts take a composite together."""

Parts = Mapping[str, Array]
"""The parts' values by name, all of one shape; NaN where a part is undefined."""


@dataclass(frozen=True, eq=False)
class Composite(Estimator):
    """A function of estimates.

    Attributes:
        function: From the parts' values to the composite's, element by element; it may divide freely, as NaN and
            infinite mean undefined. A named function, or `functools.partial` around one where it has parameters.
        parts: What it is a function of.
        n: What each row contributes to the denominator.
        low, high: The composite's range.
        explains_variation: The statistic is also undefined where nothing varies (kappas): n is then kept, whereas
            otherwise an undefined statistic has an empty denominator, n = 0.
    """

    counted: ClassVar[frozenset[str]] = frozenset({"n"})
    function: Callable[[Parts], Array]
    parts: Mapping[str, Estimator]
    n: pl.Expr = field(default_factory=every_row)
    low: float = 0.0
    high: float = 1.0
    explains_variation: bool = False

    def __post_init__(self) -> None:
        if not self.parts:
            raise MetricError("A composite metric needs at least one part.")

    @property
    def labels(self) -> frozenset[str]:
        """The labels of its parts."""
        return frozenset(f"{name} {label}" for name, part in self.parts.items() for label in part.labels)

    @override
    def inputs(self) -> Mapping[str, pl.Expr]:
        own = {f"{name} {role}": e for name, part in self.parts.items() for role, e in part.inputs().items()}
        return own | {"n": self.n}

    @override
    def drawn(self, draw: Draw) -> Array:
        return self._evaluate({name: part.drawn(draw.part(name)) for name, part in self.parts.items()})

    @override
    def estimate(self, view: View) -> Estimate:
        known = {name: _with_limits(part, part.estimate(view.part(name))) for name, part in self.parts.items()}
        values = {name: each.value for name, each in known.items()}
        value = self._evaluate(values)
        total = view.totals("n")
        value = np.where(total > 0, value, np.nan)
        n = total if self.explains_variation else np.where(np.isnan(value), 0.0, total)
        units = view.units.total((view.sums("n") != 0).astype(np.float64)) * (n > 0)

        uncertain = {name: each for name, each in known.items() if len(each.influence)}
        changes = [self._changes(values, value, name, each, view.units) for name, each in uncertain.items()]
        influence = np.asarray(sum((each.influence for each in changes), np.zeros(len(view.units.group_of))))
        variance = view.units.total(influence**2)
        supports = [_support(view.part(name)) for name in uncertain]
        correlations = _correlations([each.influence for each in changes], supports, view.units)
        down = combined(np.stack([each.down for each in changes]), correlations)
        up = combined(np.stack([each.up for each in changes]), correlations)
        fewest = np.fmin.reduce([np.where(np.isnan(each.value), np.nan, each.fewest) for each in uncertain.values()])
        if self.explains_variation:  # its parts all but cancel, which is seen only when they move together
            together = np.nan_to_num(student(units) * np.sqrt(variance))
            down, up = np.maximum(down, together), np.maximum(up, together)
        low, high = value - down, value + up
        if not self.explains_variation:
            apart = [np.sqrt(sum(getattr(each, side) ** 2 for each in changes)) for side in ("down", "up")]
            lowest, highest = (self._farthest(values, value, uncertain, sign) for sign in (-1, 1))
            low = np.fmin(low, value - _kept(down, apart[0]) * (value - lowest))
            high = np.fmax(high, value + _kept(up, apart[1]) * (highest - value))
        unknown = np.isnan(value)
        return Estimate(
            value,
            n,
            units,
            np.where(unknown, np.nan, n / _design_effect(list(uncertain.values()), changes, view.units)),
            np.where(unknown | (fewest < 2), np.nan, np.sqrt(variance)),
            np.maximum(low, self.low),
            np.minimum(high, self.high),
            np.where(unknown, 0.0, np.nan_to_num(fewest)),
            influence,
        )

    def _evaluate(self, values: Parts) -> Array:
        """`function` of the values, NaN where it is undefined."""
        with np.errstate(all="ignore"):
            result = np.asarray(self.function(values), dtype=np.float64)
        shape = next(iter(values.values())).shape
        if result.shape != shape:
            raise MetricError(f"its function must return one number for each of {shape}, not {result.shape}")
        return np.where(np.isfinite(result), result, np.nan)

    def _farthest(self, values: Parts, value: Array, uncertain: Mapping[str, Estimate], sign: int) -> Array:
        """The lowest (-1) or highest (1) value of the function where the parts move together, as far as likely.

        Each part moves by a share of its margin, whose squares sum up to one. Products need this: no part alone takes
        them far from 0. A part of next to no units is at its limit throughout: nothing is known that speaks against.
        """
        limits = {name: (part.ci_low, part.ci_high) for name, part in uncertain.items()}
        middle = {name: (low + high) / 2 for name, (low, high) in limits.items()}
        start = dict(values) | {name: np.where(np.isnan(values[name]), middle[name], values[name]) for name in limits}
        ends = {
            name: np.where(self._rises(start, name, low, high) == (sign > 0), high, low)
            for name, (low, high) in limits.items()
        }
        ends = {name: np.where(np.isnan(end), start[name], end) for name, end in ends.items()}
        for name, part in uncertain.items():
            if not isinstance(self.parts[name], Rate):
                start[name] = np.where(part.units < FEWEST_UNITS, ends[name], start[name])

        def gain(at: Parts, name: str) -> Array:
            moved = self._evaluate({**at, name: ends[name]}) - self._evaluate({**at, name: start[name]})
            return np.abs(np.nan_to_num(moved))

        shares = {name: np.full_like(value, len(limits) ** -0.5) for name in limits}
        farthest = value
        for _ in range(STEPS):
            at = start | {name: start[name] + shares[name] * (ends[name] - start[name]) for name in limits}
            farthest = (np.fmax if sign > 0 else np.fmin)(farthest, self._evaluate(at))
            gains = {name: gain(at, name) for name in limits}
            norm = np.sqrt(sum((each**2 for each in gains.values()), np.zeros_like(value)))
            shares = {name: np.where(norm > 0, quotient(gains[name], norm), shares[name]) for name in limits}
        return farthest

    def _rises(self, start: Parts, name: str, low: Array, high: Array) -> NDArray[np.bool_]:
        """Whether the function rises with a part, the others being in the middle of their limits."""
        between = {each: np.clip(np.nan_to_num(at, nan=0.5), 1e-3, None) for each, at in start.items()}
        return np.asarray(self._evaluate({**between, name: high}) >= self._evaluate({**between, name: low}))

    def _changes(self, values: Parts, value: Array, name: str, part: Estimate, units: Units) -> "_Changes":
        """What follows for the composite when one part goes to its limits, or by its standard error."""

        def moved(to: Array) -> Array:
            return np.nan_to_num(self._evaluate({**values, name: np.where(np.isnan(to), part.value, to)}) - value)

        at_low, at_high = moved(part.ci_low), moved(part.ci_high)
        with np.errstate(all="ignore"):
            step = np.nan_to_num(np.sqrt(units.total(part.influence**2)))
            above = np.fmin(part.value + step, np.fmax(part.ci_high, part.value))
            below = np.fmax(part.value - step, np.fmin(part.ci_low, part.value))
            slope = np.nan_to_num((moved(above) - moved(below)) / (above - below), posinf=0.0, neginf=0.0)
        return _Changes(
            down=np.maximum(0.0, -np.minimum(at_low, at_high)),
            up=np.maximum(0.0, np.maximum(at_low, at_high)),
            influence=slope[units.group_of] * part.influence,
        )


def _kept(together: Array, apart: Array) -> Array:
    """How much of a margin correlations leave, or add to it."""
    return np.where(apart > 0, quotient(together, apart), 1.0)


def _with_limits(part: Estimator, estimate: Estimate) -> Estimate:
    """Give a part the limits that hold it near 0 and 1 too, and the whole range where too few units give it none."""
    if isinstance(part, Rate):
        n_eff = np.nan_to_num(estimate.n_eff)
        low, high = modified_wilson(np.where(estimate.value >= 1, n_eff, estimate.value * n_eff), n_eff)
        return replace(
            estimate,
            ci_low=np.where(n_eff > 0, np.fmin(estimate.ci_low, low), 0.0),
            ci_high=np.where(n_eff > 0, np.fmax(estimate.ci_high, high), 1.0),
        )
    least, most = getattr(part, "low", -np.inf), getattr(part, "high", np.inf)
    if not np.isfinite(most - least) or not len(estimate.influence):
        return estimate
    bounds = (
        np.where(np.isnan(end), bound, end) for end, bound in ((estimate.ci_low, least), (estimate.ci_high, most))
    )
    low, high = bounds
    return replace(estimate, ci_low=low, ci_high=high)


@dataclass(frozen=True, eq=False)
class _Changes:
    """How far a composite moves down and up with one part, [groups], and what units add to its error by it."""

    down: Array
    up: Array
    influence: Array


_COUNTED = ("of", "denominator", "confident", "known", "n")
"""Inputs of parts that tell which rows count."""


def _support(view: View) -> Array:
    """Which units a part rests on, [units], as 0 or 1."""
    role = next(each for each in _COUNTED if view.prefix + each in view.column_of)
    return np.asarray((view.sums(role) != 0).astype(np.float64))


def _correlations(influences: Sequence[Array], supports: Sequence[Array], units: Units) -> Array:
    """[parts, parts, groups]: how the changes hang together.

    Where one does not vary between the units seen, nothing is known of that: parts of the same units may go together.
    Changes that cancel in the units seen are taken to do so but for two unseen ones, in which they do not.
    """
    parts = len(influences)
    correlations = np.empty((parts, parts, units.groups))
    with np.errstate(all="ignore"):
        deviation = [np.sqrt(units.total(each**2)) for each in influences]
        most = [units.most(np.abs(each)) for each in influences]
        wider = [np.sqrt(own**2 + 2 * unseen**2) for own, unseen in zip(deviation, most, strict=True)]
        sizes = [np.sqrt(units.total(each)) for each in supports]
        for i, j in combinations_with_replacement(range(parts), 2):
            covariance = units.total(influences[i] * influences[j])
            spread = np.where(covariance < 0, wider[i] * wider[j], deviation[i] * deviation[j])
            seen = covariance / spread
            possible = np.nan_to_num(units.total(supports[i] * supports[j]) / (sizes[i] * sizes[j]))
            correlations[i, j] = correlations[j, i] = np.where(np.isfinite(seen), seen, possible)
    correlations[np.arange(parts), np.arange(parts)] = 1.0
    return np.asarray(np.clip(correlations, -1.0, 1.0))


def _design_effect(parts: Sequence[Estimate], changes: Sequence[_Changes], units: Units) -> Array:
    """Of the parts, in the mean that weighs them by what they add to the variance."""
    with np.errstate(all="ignore"):
        effects = np.stack([np.where(part.n > 0, part.n / part.n_eff, 1.0) for part in parts])
    variances = np.stack([units.total(each.influence**2) for each in changes])
    some = variances.sum(axis=0) > 0
    weights = np.where(some, variances, 1.0)
    effects = np.where(np.isfinite(effects), effects, 1.0)
    return np.asarray((weights * effects).sum(axis=0) / (weights.sum(axis=0)))


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
        label = self._label(draw.view)
        return mean_defined(quotient(draw.apart("successes", label), draw.apart("of", label)))

    @override
    def estimate(self, view: View) -> Estimate:
        finer, group, unit = view.apart(self._label(view))
        rate = Rate(self.successes, self.of).estimate(finer)
        counted = (rate.n > 0).astype(np.float64)
        groups = view.units.groups

        def total(values: Array) -> Array:
            return added_up(group, np.where(counted > 0, values, 0.0), groups)

        labels = total(counted)
        value = quotient(total(rate.value), labels)
        share = quotient(np.ones(groups), labels)
        influence = added_up(unit, rate.influence, len(view.units.group_of)) * share[view.units.group_of]
        own = finer.units.total(rate.influence**2)
        seen = np.where(own > 0, own, 0.0)
        guessed = np.where(np.isnan(rate.se), ((rate.ci_high - rate.ci_low) / (2 * Z)) ** 2, 0.0)
        together, apart = view.units.total(influence**2), total(seen) * share**2
        clusters = view.units.total((view.sums("of") != 0).astype(np.float64))
        # Of clusters that have rows under several labels: where these cancel, one unseen whose rows do not is left.
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
            influence,
        )

    @staticmethod
    def _reach(units: Array, shared: Array) -> Array:
        """The factor for rates that vary together, by Student's quantile, for that much is known of few clusters."""
        together = np.abs(shared - 1) > TIE
        return np.sqrt(shared) * np.where(together, np.fmax(1.0, np.nan_to_num(student(units), nan=1.0) / Z), 1.0)

    @staticmethod
    def _noise(rate: Estimate, whole: Array) -> Array:
        """How far each label's rate reaches either way if it is near the mean of all.

        Wilson's interval of a rate of 0 or 1 reaches one way only, which many small labels together do not deserve.
        """
        with np.errstate(all="ignore"):
            likely = (rate.value * rate.n_eff + 2 * whole) / (rate.n_eff + 2)
            return np.asarray(Z * np.sqrt(likely * (1 - likely) / rate.n_eff))

    @staticmethod
    def _label(view: View) -> Integers:
        return view.columns.ranks(view.named("by"))


def mean_defined(values: Array) -> Array:
    """Take the mean over the last axis of what is defined (not NaN); NaN where nothing is."""
    defined = ~np.isnan(values)
    return quotient(np.where(defined, values, 0.0).sum(axis=-1), defined.sum(axis=-1))
