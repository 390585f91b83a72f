"""Calibration of stated confidence: expected, maximum and adaptive error over bins; the parts of the Brier score."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray
from typing_extensions import override

from evalake.metrics.columns import added_up, numbered
from evalake.metrics.estimator import Draw, Estimate, Estimator, effective_size, quotient
from evalake.metrics.intervals import CONFIDENCE, Array, Integers, Z, student, wilson
from evalake.metrics.units import Linearised, View

BINS = 10
SPREAD_IN_BIN = 1 / BINS / 12**0.5
"""The standard deviation of confidences that are spread evenly over an equal bin."""

TIE = 1e-12
"""Gaps smaller than this are rounding errors."""

Statistic = Literal["mean", "debiased", "maximum", "reliability", "resolution", "uncertainty"]
Moved = Statistic | Literal["alike"]


def equal_width_bin(confidence: pl.Expr) -> pl.Expr:
    """Compute the bin, 0..9, of a confidence in 0..1: ten equal bins (lo, hi], the first with exactly 0."""
    return sum((confidence > k / BINS for k in range(1, BINS)), start=confidence * 0).cast(pl.Int64)


def equal_mass_bins(level: Integers, group: Integers, groups: int) -> Integers:
    """Assign rows to at most ten bins, from 1, of about equal size in each group; equal confidences share a bin.

    Rows are put in order of confidence, and cut after each tenth; a confidence belongs to the bin of its first row, so
    a heavy one fills its bin and leaves the following ones without rows.

    Args:
        level: [rows] the rank of each row's confidence, 0 where it has none, which gets bin 0.
        group: [rows] the group of each row.
        groups: How many groups there are; in `group`, this number means no group.
    """
    levels = int(level.max(initial=0)) + 1
    of_row, pairs = numbered(group * levels + level, (groups + 1) * levels)
    rows = np.bincount(of_row, minlength=len(pairs)) * (pairs % levels > 0)
    ends = np.cumsum(rows)
    starts = np.searchsorted(pairs // levels, np.arange(groups + 1))
    before_group = np.append(0, ends)[starts][pairs // levels]
    whole = np.bincount(pairs // levels, rows, groups + 1)[pairs // levels]
    bins = 1 + ((ends - rows - before_group) * BINS // np.maximum(whole, 1)).astype(np.int64)
    return np.where(pairs % levels > 0, bins, 0)[of_row]


@dataclass(frozen=True, eq=False)
class CalibrationError(Estimator):
    """What follows from the gaps between accuracy and mean confidence in bins of confidence, over rows that have both.

    Attributes:
        statistic: The mean of the bins' gaps, weighted by their rows (Naeini and others 2015); the same less what
            noise alone adds to it; the largest gap; or of the Brier score (Murphy 1973) reliability, the mean squared
            gap, resolution, the mean squared distance of a bin's accuracy from the whole's, and uncertainty, accuracy
            x (1 - accuracy). Their sum (resolution subtracted) is the score of the bins' mean confidences.
        by: Label of the bin, or the confidence, where bins are made of equal mass (Nguyen and O'Connor 2015): stated
            confidences cluster (.9, .95, 1), and leave most of ten equal bins empty; these bins follow the data.

    The interval combines those of the bins' accuracies. Noise makes gaps: a mean of gaps is too high by about as much
    as they are uncertain, so the interval is laid around the value without that noise, and includes the value itself.
    An error begins at 0 unless the gaps together are larger than those of calibrated confidences (`calibrated`).
    """

    labels: ClassVar[frozenset[str]] = frozenset({"by"})
    confidence: pl.Expr
    correct: pl.Expr
    statistic: Statistic = "mean"
    equal_mass: bool = False

    @override
    def inputs(self) -> Mapping[str, pl.Expr]:
        known = self.confidence.is_not_null() & self.correct.is_not_null()
        by = self.confidence if self.equal_mass else equal_width_bin(self.confidence)
        return {
            "confident": known,
            "correct": known & self.correct,
            "confidence": pl.when(known).then(self.confidence).cast(pl.Float64),
            "by": pl.when(known).then(by),
        }

    @override
    def drawn(self, draw: Draw) -> Array:
        label = self._label(draw.view)()
        n, correct, confidence = (draw.apart(role, label) for role in ("confident", "correct", "confidence"))
        weights = quotient(n, n.sum(axis=-1, keepdims=True))
        gaps = np.abs(quotient(correct - confidence, n))
        match self.statistic:
            case "maximum":
                return np.asarray(np.fmax.reduce(gaps, axis=-1))
            case "reliability":
                return np.asarray(np.nansum(weights * gaps**2, axis=-1))
            case "resolution":
                whole = quotient(correct.sum(axis=-1), n.sum(axis=-1))[..., None]
                return np.asarray(np.nansum(weights * (quotient(correct, n) - whole) ** 2, axis=-1))
            case "uncertainty":
                whole = quotient(correct.sum(axis=-1), n.sum(axis=-1))
                return whole * (1 - whole)
            case _:
                return np.asarray(np.nansum(weights * gaps, axis=-1))

    @override
    def estimate(self, view: View) -> Estimate:
        if self.statistic == "uncertainty":
            return _uncertainty(view)
        bins = _Bins.of(view, self.equal_mass, self._label(view), self.statistic == "maximum")
        n, units = view.totals("confident"), view.counting("confident")
        n_eff = np.where(n > 0, n * quotient(units, n), np.nan)
        if self.statistic == "maximum":
            value, low, high = bins.largest()
            se = np.where(units > 1, (high - low) / (2 * Z), np.nan) + 0 * value
            return Estimate(value, n, units, n_eff, se, low, high, units, lambda: np.zeros(view.units.count))
        value, low, high = bins.weighted(self.statistic)
        se = np.where(units > 1, np.sqrt(bins.together(self.statistic)), np.nan) + 0 * value
        return Estimate(value, n, units, n_eff, se, low, high, units, lambda: bins.influence(self.statistic))

    def together(self, view: View) -> Array:
        """Compute the standard error of a mean of gaps that all move alike; 0 of other statistics."""
        if self.statistic not in ("mean", "debiased"):
            return np.zeros(view.units.groups)
        bins = _Bins.of(view, self.equal_mass, self._label(view), False)
        return np.sqrt(bins.together("alike"))

    def _label(self, view: View) -> Callable[[], Integers]:
        """Make the label of each row of the view's units."""
        if not self.equal_mass:
            return lambda: view.ranks("by")
        return lambda: equal_mass_bins(view.ranks("by"), view.units.row_group, view.units.groups)


def _uncertainty(view: View) -> Estimate:
    """Estimate accuracy x (1 - accuracy), between its values at the limits of accuracy, and at a half where within."""
    line = view.ratio("correct", "confident")
    n, accuracy = line.below.total, line.value
    low, high = _accuracy_limits(line, None)
    at_low, at_high = low * (1 - low), high * (1 - high)
    most = np.where((low < 0.5) & (high > 0.5), 0.25, np.maximum(at_low, at_high))
    slope = 1 - 2 * np.nan_to_num(accuracy)
    se = np.sqrt(np.nan_to_num(line.variance) * slope**2)
    value = accuracy * (1 - accuracy)
    n_eff = np.where(n > 0, n * quotient(line.count, line.below.row_total), np.nan)
    ends = np.minimum(at_low, at_high), most
    se = np.where(line.count > 1, se, np.nan)

    def influence() -> Array:
        return np.asarray(line.influence * view.units.spread(slope))

    return Estimate(value, n, line.count, n_eff, se, *ends, line.count, influence)


@dataclass(frozen=True, eq=False)
class _Bins:
    """The bins of all groups: [bins] the group, its share of the rows, the gap with limits, and what noise adds."""

    view: View
    key: tuple[Hashable, ...]
    group: Integers
    unit: Integers
    share: Array
    gap: Array
    low: Array
    high: Array
    variance: Array
    by_chance: Array
    line: Linearised

    @classmethod
    def of(cls, view: View, equal_mass: bool, label: Callable[[], Integers], simultaneous: bool) -> "_Bins":
        """Make the bins of the view's groups, once for all statistics."""
        key = "bins", equal_mass, *(view.named(role) for role in ("by", "confident", "correct", "confidence"))
        finer, group, unit = view.apart(key, label)
        confidence = finer.ratio("confidence", "confident").value
        line = finer.ratio("correct", "confident")
        n, accuracy = line.below.total, line.value
        low, high = _accuracy_limits(line, group if simultaneous else None)
        low, high = low - confidence, high - confidence
        gap = accuracy - confidence
        if simultaneous:  # the largest gap of few rows hangs on the mean confidence of its bin, too
            reach = _bonferroni(group) * SPREAD_IN_BIN / np.sqrt(np.maximum(_size(line), 1))
            low, high = gap - np.hypot(gap - low, reach), gap + np.hypot(high - gap, reach)
        share = n / np.maximum(view.totals("confident")[group], 1)
        # One row shows nothing of its own noise: as much is taken as a calibrated one would have.
        guessed = confidence * (1 - confidence) / np.maximum(n, 1)
        variance = np.where(np.isnan(line.variance), guessed, line.variance)
        with np.errstate(all="ignore"):
            by_chance = np.fmax(
                np.nan_to_num(line.variance), confidence * (1 - confidence) / np.maximum(_size(line), 1)
            )
        return cls(view, key, group, unit, share, gap, low, high, variance, by_chance, line)

    @property
    def accuracy(self) -> Array:
        """The share that is right, [bins]."""
        return self.line.value

    def total(self, values: Array) -> Array:
        """Add up by group."""
        return added_up(self.group, values, self.view.units.groups)

    def largest(self) -> tuple[Array, Array, Array]:
        """Find the largest gap of each group with its limits, which hold for all bins at once."""
        least, most = self._distance(0.0)
        groups = self.view.units.groups
        value, low, high = (np.full(groups, -np.inf) for _ in range(3))
        for into, values in ((value, np.abs(self.gap)), (low, least), (high, most)):
            np.maximum.at(into, self.group, values)
        low, high = np.minimum(low, value), np.clip(high, value, 1.0)
        value, low, high = (np.where(np.isfinite(each), each, np.nan) for each in (value, low, high))
        return value, low, high

    def weighted(self, statistic: Statistic) -> tuple[Array, Array, Array]:
        """Compute a weighted mean over the bins, with its limits, [groups] each."""
        known = np.bincount(self.group, minlength=self.view.units.groups) > 0
        whole = self.total(self.share * self.accuracy)[self.group]
        squared = statistic in ("reliability", "resolution")
        centre = whole - (self.accuracy - self.gap) if statistic == "resolution" else np.zeros_like(self.gap)
        raw = np.abs(self.gap - centre)
        clean = _without_noise(raw, self.variance)
        least, most = self._distance(centre)
        if squared:
            raw, clean, least, most = raw**2, clean**2, least**2, most**2
        middle = self.total(self.share * clean)
        inwards = np.where(self.gap > centre, self.gap - self.low, self.high - self.gap)
        down = 2 * np.sqrt(raw) * inwards if squared else inwards
        up = np.maximum(np.maximum(most, clean) - clean, down)
        reach = np.sqrt(self._shared(statistic)) * self._few_units()
        low = middle - reach * np.sqrt(self.total((self.share * down) ** 2))
        high = middle + reach * np.sqrt(self.total((self.share * up) ** 2))
        value = self.total(self.share * raw)
        if statistic == "debiased":
            noise = _mean_of_noisy(clean, self.variance) - clean
            value = np.maximum(0.0, value - self.total(self.share * noise))
        low, high = np.minimum(np.maximum(low, 0.0), value), np.clip(np.maximum(high, value), 0.0, 1.0)
        if statistic != "resolution":
            low = np.where(self.calibrated(), 0.0, low)
        value, low, high = (np.where(known, each, np.nan) for each in (value, low, high))
        return value, low, high

    def calibrated(self) -> NDArray[np.bool_]:
        """Tell where the gaps are no larger than by chance: the sum of gap squared over variance, chi-square, 97.5 %.

        A bin's variance is that between its units, or that of calibrated confidences where this is larger. Gaps of one
        cluster that lies in several bins hang together, and count as fewer (Satterthwaite 1946).
        """
        from scipy.special import gammaincinv

        bins = np.bincount(self.group, minlength=self.view.units.groups).astype(np.float64)
        with np.errstate(all="ignore"):
            squares = self.total(np.where(np.abs(self.gap) < TIE, 0.0, self.gap**2 / self.by_chance))
            free = np.maximum(1.0, bins**2 / np.maximum(bins, self._alike()))
            most = 2 * gammaincinv(free / 2, (1 + CONFIDENCE) / 2) * bins / free
        return np.asarray(squares <= most * self._few_units() ** 2)

    def _alike(self) -> Array:
        """Add up the squared correlations of the bins' accuracies over all pairs of bins, [groups]."""
        groups, units = self.view.units.groups, self.view.units.count
        place = np.arange(len(self.group)) - np.searchsorted(self.group, self.group)
        influence = self.line.influence * self.line.units.spread(1 / np.sqrt(self.line.variance))
        influence = np.where(np.isfinite(influence), influence, 0.0)
        of_bin = self.line.units.spread(place.astype(np.float64))
        apart = [added_up(self.unit, np.where(of_bin == each, influence, 0.0), units) for each in range(BINS)]
        pairs = ((i, j) for i in range(BINS) for j in range(i))
        of_pairs = (self.view.units.total(apart[i] * apart[j]) ** 2 for i, j in pairs)
        return np.bincount(self.group, minlength=groups) + 2 * sum(of_pairs, start=np.zeros(groups))

    def _shared(self, statistic: Statistic) -> Array:
        """Compute the mean's variance over that of independent bins, as units may have rows in several; 1 at least."""
        bins = self.line.units
        own = added_up(
            self.group, self._slope(statistic) ** 2 * bins.total(self.line.influence**2), self.view.units.groups
        )
        return np.where(own > 0, np.maximum(1.0, quotient(self.together(statistic), own)), 1.0)

    def together(self, statistic: Moved) -> Array:
        """Compute the variance of a weighted mean, [groups]."""
        return self.view.units.total(self.influence(statistic) ** 2)

    def _few_units(self) -> Array:
        """Compute Student's quantile, for a variance between so many units, as a multiple of the normal quantile."""
        return np.asarray(np.nan_to_num(student(self.view.counting("confident")), nan=Z) / Z)

    def influence(self, statistic: Moved) -> Array:
        """Compute what each unit of the whole adds to the error of a weighted mean, [units]."""

        def add_up() -> Array:
            of_bins = self.line.units.spread(self._slope(statistic)) * self.line.influence
            return added_up(self.unit, of_bins, self.view.units.count)

        slope = statistic if statistic in ("reliability", "resolution", "alike") else "mean"
        return self.view.once((*self.key, slope), add_up)

    def _slope(self, statistic: Moved) -> Array:
        """Compute the derivative of the mean by each bin's accuracy, [bins]."""
        slope = 2 * self.gap if statistic == "reliability" else np.sign(np.where(np.abs(self.gap) < TIE, 0.0, self.gap))
        if statistic == "alike":
            slope = np.ones_like(self.gap)
        if statistic == "resolution":
            slope = 2 * (self.accuracy - self.total(self.share * self.accuracy)[self.group])
        return np.asarray(slope * self.share)

    def _distance(self, centre: Array | float) -> tuple[Array, Array]:
        """Compute the least and the largest distance from `centre` within the limits of each gap."""
        low, high = self.low - centre, self.high - centre
        inside = (low < 0) & (high > 0)
        least = np.where(inside, 0.0, np.minimum(np.abs(low), np.abs(high)))
        return least, np.maximum(np.abs(low), np.abs(high))


def _accuracy_limits(line: Linearised, group: Integers | None) -> tuple[Array, Array]:
    """Compute Wilson limits of the bins' accuracies; those of all bins of a `group` at once if given (Bonferroni)."""
    n_eff = _size(line)
    z: Array | float = Z if group is None else _bonferroni(group)
    return wilson(np.where(line.value >= 1, n_eff, line.value * n_eff), n_eff, z)


def _bonferroni(group: Integers) -> Array:
    """Compute the normal quantile of each bin with which the limits of all bins of its group hold at once."""
    from scipy.special import ndtri

    return np.asarray(-ndtri((1 - CONFIDENCE) / 2 / np.bincount(group)[group]))


def _size(line: Linearised) -> Array:
    """Compute the effective number of independent rows of each bin."""
    most = line.below.total
    return np.where(line.single, most, np.minimum(effective_size(line, 0.0, 1.0, np.ones_like(most)), most))


def _mean_of_noisy(gap: Array, variance: Array) -> Array:
    """Compute the mean absolute value of a normal distribution around a gap (the folded normal distribution)."""
    from scipy.special import ndtr

    deviation = np.sqrt(variance)
    with np.errstate(all="ignore"):
        z = np.where(deviation > 0, gap / deviation, np.inf)
        mean = deviation * np.sqrt(2 / np.pi) * np.exp(-(z**2) / 2) + gap * (1 - 2 * ndtr(-z))
    return np.where(deviation > 0, mean, gap)


def _without_noise(gap: Array, variance: Array) -> Array:
    """Find the gap whose mean absolute value, with its noise, is the one seen; 0 where noise alone gives as much."""
    low, high = np.zeros_like(gap), gap.copy()
    for _ in range(40):
        middle = (low + high) / 2
        too_much = _mean_of_noisy(middle, variance) > gap
        low, high = np.where(too_much, low, middle), np.where(too_much, middle, high)
    return np.where(_mean_of_noisy(np.zeros_like(gap), variance) >= gap, 0.0, (low + high) / 2)


ece = CalibrationError
"""The expected calibration error in ten equal bins."""
ece_debiased = partial(CalibrationError, statistic="debiased")
"""The expected calibration error less what noise alone adds, by a normal approximation in each bin."""
mce = partial(CalibrationError, statistic="maximum")
"""The maximum calibration error in ten equal bins."""
ece_adaptive = partial(CalibrationError, equal_mass=True)
"""The expected calibration error in bins of equal mass."""
