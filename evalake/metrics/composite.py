"""Composite metrics: functions of several estimates, from a mean of two rates to a weighted index.

The interval combines those of the parts by how far the function moves when one part goes to its limit, and by how the
parts hang together (MOVER, Zou and Donner 2008). So it keeps what the parts' intervals are good at: small samples,
values near the ends of the range, clusters. A composite is as reliable as its least reliable part.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations_with_replacement
from typing import ClassVar

import numpy as np
import polars as pl
from typing_extensions import override

from evalake.core.errors import MetricError
from evalake.metrics.columns import added_up
from evalake.metrics.estimator import Draw, Estimate, Estimator, estimated, every_row, identity, quotient
from evalake.metrics.estimators import Rate
from evalake.metrics.intervals import Array, Z, combined, modified_wilson, student
from evalake.metrics.units import View

FEWEST_UNITS = 5
"""Below so many units, a part other than a rate is put at its limit: its few values do not rule that out."""

STEPS = 4
"""Steps of the search for the farthest value of a composite whose parts move together."""

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
        known = {name: _with_limits(part, view.part(name)) for name, part in self.parts.items()}
        values = {name: each.value for name, each in known.items()}
        value = self._evaluate(values)
        total = view.totals("n")
        value = np.where(total > 0, value, np.nan)
        n = total if self.explains_variation else np.where(np.isnan(value), 0.0, total)
        units = view.counting("n") * (n > 0)

        uncertain = {name: each for name, each in known.items() if each.make_influence}
        together = _Together(
            view, [identity(self.parts[name], view.part(name)) for name in uncertain], [*uncertain.values()]
        )
        changes = self._changes(values, value, uncertain, np.sqrt(np.nan_to_num(together.variances)))
        influence = together.influence(changes.slope)
        variance = view.units.total(influence**2) * view.units.stratified(influence, view.sums("n") != 0)
        correlations = together.correlations(changes.slope, [_support(view.part(name)) for name in uncertain])
        down, up = combined(changes.down, correlations), combined(changes.up, correlations)
        fewest = np.fmin.reduce([np.where(np.isnan(each.value), np.nan, each.fewest) for each in uncertain.values()])
        if self.explains_variation:  # its parts all but cancel, which is seen only when they move together
            at_once = np.nan_to_num(student(units) * np.sqrt(variance))
            down, up = np.maximum(down, at_once), np.maximum(up, at_once)
        low, high = value - down, value + up
        if not self.explains_variation:
            apart = [np.sqrt((each**2).sum(axis=0)) for each in (changes.down, changes.up)]
            lowest, highest = (self._farthest(values, value, uncertain, sign) for sign in (-1, 1))
            low = np.fmin(low, value - _kept(down, apart[0]) * (value - lowest))
            high = np.fmax(high, value + _kept(up, apart[1]) * (highest - value))
        unknown = np.isnan(value)
        variances = changes.slope**2 * np.stack(together.variances)
        return Estimate(
            value,
            n,
            units,
            np.where(unknown, np.nan, n / _design_effect(list(uncertain.values()), variances)),
            np.where(unknown | (fewest < 2), np.nan, np.sqrt(variance)),
            np.maximum(low, self.low),
            np.minimum(high, self.high),
            np.where(unknown, 0.0, np.nan_to_num(fewest)),
            lambda: influence,
        )

    def _evaluate(self, values: Parts) -> Array:
        """Apply `function` to the values; NaN where it is undefined."""
        with np.errstate(all="ignore"):
            result = np.asarray(self.function(values), dtype=np.float64)
        shape = next(iter(values.values())).shape
        if result.shape != shape:
            raise MetricError(f"its function must return one number for each of {shape}, not {result.shape}")
        return np.where(np.isfinite(result), result, np.nan)

    def _farthest(self, values: Parts, value: Array, uncertain: Mapping[str, Estimate], sign: int) -> Array:
        """Find the lowest (-1) or highest (1) value of the function where the parts move together, as far as likely.

        Each part moves by a share of its margin, whose squares sum up to one. Products need this: no part alone takes
        them far from 0. A part of next to no units stays at its limit: its few values do not rule that out.
        """
        limits = {name: (part.ci_low, part.ci_high) for name, part in uncertain.items()}
        middle = {name: (low + high) / 2 for name, (low, high) in limits.items()}
        start = dict(values) | {name: np.where(np.isnan(values[name]), middle[name], values[name]) for name in limits}
        between = {each: np.clip(np.nan_to_num(at, nan=0.5), 1e-3, None) for each, at in start.items()}
        at_low, at_high = self._moved(between, limits)
        upwards = (at_high >= at_low) == (sign > 0)
        ends = {name: np.where(up, high, low) for up, (name, (low, high)) in zip(upwards, limits.items(), strict=True)}
        ends = {name: np.where(np.isnan(end), start[name], end) for name, end in ends.items()}
        for name, part in uncertain.items():
            if not isinstance(self.parts[name], Rate):
                start[name] = np.where(part.units < FEWEST_UNITS, ends[name], start[name])

        either = {name: (start[name], ends[name]) for name in limits}
        shares = {name: np.full_like(value, len(limits) ** -0.5) for name in limits}
        farthest = value
        for _ in range(STEPS):
            at = start | {name: start[name] + shares[name] * (ends[name] - start[name]) for name in limits}
            farthest = (np.fmax if sign > 0 else np.fmin)(farthest, self._evaluate(at))
            at_start, at_end = self._moved(at, either)
            gains = np.abs(np.nan_to_num(at_end - at_start))
            norm = np.sqrt((gains**2).sum(axis=0))
            shares = {
                name: np.where(norm > 0, quotient(gain, norm), shares[name])
                for name, gain in zip(limits, gains, strict=True)
            }
        return farthest

    def _moved(self, at: Parts, places: Mapping[str, tuple[Array, ...]]) -> Array:
        """Evaluate the function where one part at a time goes to each of its places, [places, parts, groups]."""
        shape = len(next(iter(places.values()))), len(places), *next(iter(at.values())).shape
        moved = {name: np.broadcast_to(value, shape) for name, value in at.items()}
        for number, (name, of_part) in enumerate(places.items()):
            moved[name] = moved[name].copy()
            moved[name][:, number] = of_part
        return self._evaluate(moved)

    def _changes(self, values: Parts, value: Array, uncertain: Mapping[str, Estimate], steps: Array) -> "_Changes":
        """Compute how the composite changes when one part goes to its limits, or by its standard error."""
        places = {
            name: (part.ci_low, part.ci_high, *_around(part, step))
            for (name, part), step in zip(uncertain.items(), steps, strict=True)
        }
        known = {
            name: tuple(np.where(np.isnan(to), values[name], to) for to in of_part) for name, of_part in places.items()
        }
        at_low, at_high, below, above = np.nan_to_num(self._moved(values, known) - value)
        with np.errstate(all="ignore"):
            apart = np.stack([of_part[3] - of_part[2] for of_part in places.values()])
            slope = np.nan_to_num((above - below) / apart, posinf=0.0, neginf=0.0)
        down, up = np.minimum(at_low, at_high), np.maximum(at_low, at_high)
        return _Changes(np.maximum(0.0, -down), np.maximum(0.0, up), slope)


def _around(part: Estimate, step: Array) -> tuple[Array, Array]:
    """Compute the values of a part a step below and above, within its limits."""
    with np.errstate(all="ignore"):
        below = np.fmax(part.value - step, np.fmin(part.ci_low, part.value))
        return below, np.fmin(part.value + step, np.fmax(part.ci_high, part.value))


def _kept(together: Array, apart: Array) -> Array:
    """Compute the factor by which correlations change a margin; 1 where there is none."""
    return np.where(apart > 0, quotient(together, apart), 1.0)


def _with_limits(part: Estimator, view: View) -> Estimate:
    """Estimate a part, once for all composites."""
    return view.once(("part", identity(part, view)), lambda: _limited(part, estimated(part, view)))


def _limited(part: Estimator, estimate: Estimate) -> Estimate:
    """Give a rate limits that hold near 0 and 1 too, other parts their whole range where few units give none."""
    if isinstance(part, Rate):
        n_eff = np.nan_to_num(estimate.n_eff)
        low, high = modified_wilson(np.where(estimate.value >= 1, n_eff, estimate.value * n_eff), n_eff)
        return replace(
            estimate,
            ci_low=np.where(n_eff > 0, np.fmin(estimate.ci_low, low), 0.0),
            ci_high=np.where(n_eff > 0, np.fmax(estimate.ci_high, high), 1.0),
        )
    least, most = getattr(part, "low", -np.inf), getattr(part, "high", np.inf)
    if not np.isfinite(most - least) or estimate.make_influence is None:
        return estimate
    low, high = estimate.ci_low, estimate.ci_high
    return replace(estimate, ci_low=np.where(np.isnan(low), least, low), ci_high=np.where(np.isnan(high), most, high))


@dataclass(frozen=True, eq=False)
class _Changes:
    """How far a composite moves down and up with each part, and how steeply, [parts, groups]."""

    down: Array
    up: Array
    slope: Array


_COUNTED = ("of", "denominator", "confident", "known", "n")
"""Inputs of parts that tell which rows count."""


def _support(view: View) -> tuple[View, str]:
    """Find the input that tells which units a part rests on."""
    return view, next(each for each in _COUNTED if view.prefix + each in view.column_of)


@dataclass(frozen=True, eq=False)
class _Together:
    """Correlations of the errors of parts: the covariance of each pair is added up once for all composites."""

    view: View
    names: Sequence[Hashable]
    parts: Sequence[Estimate]

    @property
    def variances(self) -> list[Array]:
        """The squared standard error of each part, [groups]."""
        return [self._covariance(i, i) for i in range(len(self.parts))]

    def influence(self, slopes: Array) -> Array:
        """Compute what each unit adds to the error of the whole, [units], by the slope of the whole with each part."""
        units = self.view.units
        whole = np.zeros(units.count)
        for slope, part in zip(slopes, self.parts, strict=True):
            whole += units.spread(slope) * part.influence
        return whole

    def correlations(self, slopes: Array, supports: Sequence[tuple[View, str]]) -> Array:
        """Compute the correlations of the changes, [parts, parts, groups].

        Where a change does not vary between the units seen, its own are unknown: parts of the same units may vary
        together. Changes that cancel in the units seen are taken to cancel but for two unseen units, in which they
        do not.
        """
        parts, groups = len(slopes), self.view.units.groups
        correlations = np.empty((parts, parts, groups))
        with np.errstate(all="ignore"):
            deviations = [np.abs(s) * np.sqrt(own) for s, own in zip(slopes, self.variances, strict=True)]
            unseen = [np.abs(slope) * self._most(i) for i, slope in enumerate(slopes)]
            wider = [np.sqrt(own**2 + 2 * most**2) for own, most in zip(deviations, unseen, strict=True)]
            for i, j in combinations_with_replacement(range(parts), 2):
                covariance = slopes[i] * slopes[j] * self._covariance(i, j)
                spread = np.where(covariance < 0, wider[i] * wider[j], deviations[i] * deviations[j])
                seen = covariance / spread
                if not np.isfinite(seen).all():
                    seen = np.where(np.isfinite(seen), seen, self._possible(supports[i], supports[j]))
                correlations[i, j] = correlations[j, i] = seen
        correlations[np.arange(parts), np.arange(parts)] = 1.0
        return np.asarray(np.clip(correlations, -1.0, 1.0))

    def _covariance(self, i: int, j: int) -> Array:
        key = "covariance", *((self.names[i], self.names[j]) if i <= j else (self.names[j], self.names[i]))
        return self.view.once(key, lambda: self.view.units.total(self.parts[i].influence * self.parts[j].influence))

    def _most(self, i: int) -> Array:
        return self.view.once(("most", self.names[i]), lambda: self.view.units.most(np.abs(self.parts[i].influence)))

    def _possible(self, first: tuple[View, str], second: tuple[View, str]) -> Array:
        """Compute the share of their units that two parts have in common."""

        def count() -> Array:
            rests_on = [view.sums(role) != 0 for view, role in (first, second)]
            size = np.sqrt(first[0].counting(first[1])) * np.sqrt(second[0].counting(second[1]))
            shared = self.view.units.total((rests_on[0] & rests_on[1]).astype(np.float64))
            return np.asarray(np.nan_to_num(shared / size))

        return self.view.once(("possible", *(view.named(role) for view, role in (first, second))), count)


def _design_effect(parts: Sequence[Estimate], variances: Array) -> Array:
    """Compute the mean design effect of the parts, weighted by what each adds to the variance."""
    with np.errstate(all="ignore"):
        effects = np.stack([np.where(part.n > 0, part.n / part.n_eff, 1.0) for part in parts])
    some = variances.sum(axis=0) > 0
    weights = np.where(some, variances, 1.0)
    effects = np.where(np.isfinite(effects), effects, 1.0)
    return np.asarray((weights * effects).sum(axis=0) / (weights.sum(axis=0)))


def mean_defined(values: Array) -> Array:
    """Take the mean over the last axis of what is defined (not NaN); NaN where nothing is."""
    defined = ~np.isnan(values)
    return quotient(np.where(defined, values, 0.0).sum(axis=-1), defined.sum(axis=-1))


# Macro averages: the unweighted mean of the rates of labels.


SAME_SHARE = 1e-9
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
        together = np.abs(shared - 1) > SAME_SHARE
        return np.sqrt(shared) * np.where(together, np.fmax(1.0, np.nan_to_num(student(units), nan=1.0) / Z), 1.0)

    @staticmethod
    def _noise(rate: Estimate, whole: Array) -> Array:
        """Compute how far each label's rate reaches either way if it is near the mean of all.

        Wilson's interval of a rate of 0 or 1 reaches one way only, which is too narrow for many small labels together.
        """
        with np.errstate(all="ignore"):
            likely = (rate.value * rate.n_eff + 2 * whole) / (rate.n_eff + 2)
            return np.asarray(Z * np.sqrt(likely * (1 - likely) / rate.n_eff))
