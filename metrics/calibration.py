"""Calibration of stated confidence: expected, maximum and adaptive error over bins; the parts of the Brier score."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import polars as pl
from typing_extensions import override

from metrics.columns import added_up, numbered
from metrics.estimators import Draw, Estimate, Estimator
from metrics.intervals import CONFIDENCE, Array, Integers, Z, student, wilson
from metrics.ratios import effective_size, quotient
from metrics.units import Linearised, View, linearised

BINS = 10
SPREAD_IN_BIN = 1 / BINS / 12**0.5
"""The standard deviation of confidences that are spread evenly over an equal bin."""

Statistic = Literal["mean", "debiased", "maximum", "reliability", "resolution", "uncertainty"]


def equal_width_bin(confidence: pl.Expr) -> pl.Expr:
    """Number the bin 0..9 of a confidence in 0..1: ten equal bins (lo, hi], of which the first also has exactly 0."""
    return sum((confidence > k / BINS for k in range(1, BINS)), start=confidence * 0).cast(pl.Int64)


def equal_mass_bins(level: Integers, group: Integers, groups: int) -> Integers:
    """Number at most ten bins of about equal size in each group that never split equal confidences, from 1.

    Rows are put in order of confidence, and cut after each tenth; a confidence belongs to the bin of its first row, so
    a heavy one fills its bin and leaves the following ones without rows.

    Args:
        level: [rows] the rank of each row's confidence, 0 where it has none, which gets bin 0.
        group: [rows] the group of each row.
        groups: How many groups there are; `group` may be that, too.
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
    as they are uncertain, so the interval is laid around what remains without, and reaches to the value at least.
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
        label = self._label(draw.view)
        n, correct, confidence = (draw.apart(role, label) for role in ("confident", "correct", "confidence"))
        weights = n / n.sum(axis=-1, keepdims=True)
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
        bins = _Bins.of(view, self._label(view), self.statistic == "maximum")
        n = view.totals("confident")
        units = view.units.total((view.sums("confident") != 0).astype(np.float64))
        if self.statistic == "maximum":
            value, low, high = bins.largest()
        else:
            value, low, high = bins.weighted(self.statistic)
        influence = (
            bins.influence(self.statistic) if self.statistic != "maximum" else np.zeros(len(view.units.group_of))
        )
        se = np.sqrt(view.units.total(influence**2)) if self.statistic != "maximum" else (high - low) / (2 * Z)
        n_eff = np.where(n > 0, n * quotient(units, view.units.total(view.sums("confident"))), np.nan)
        return Estimate(
            value, n, units, n_eff, np.where(units > 1, se, np.nan) + 0 * value, low, high, units, influence
        )

    def _label(self, view: View) -> Integers:
        level = view.columns.ranks(view.named("by"))
        return equal_mass_bins(level, view.units.group, view.units.groups) if self.equal_mass else level


def _uncertainty(view: View) -> Estimate:
    """Estimate accuracy x (1 - accuracy), between its values at the limits of accuracy, and at a half where within."""
    n = view.totals("confident")
    accuracy = quotient(view.totals("correct"), n)
    sums = view.sums("correct"), view.sums("confident"), view.rows("confident")
    line = linearised(view, *sums, accuracy, n)
    low, high = _accuracy_limits(line, None)
    at_low, at_high = low * (1 - low), high * (1 - high)
    most = np.where((low < 0.5) & (high > 0.5), 0.25, np.maximum(at_low, at_high))
    influence = line.influence * (1 - 2 * np.nan_to_num(accuracy))[view.units.group_of]
    se = np.sqrt(view.units.total(influence**2))
    value = accuracy * (1 - accuracy)
    n_eff = np.where(n > 0, n * quotient(line.count, view.units.total(line.rows)), np.nan)
    ends = np.minimum(at_low, at_high), most
    return Estimate(value, n, line.count, n_eff, np.where(line.count > 1, se, np.nan), *ends, line.count, influence)


@dataclass(frozen=True, eq=False)
class _Bins:
    """The bins of all groups: [bins] the group, its share of the rows, the gap with limits, and what noise adds."""

    view: View
    group: Integers
    unit: Integers
    group_of: Integers
    share: Array
    accuracy: Array
    gap: Array
    low: Array
    high: Array
    variance: Array
    per_unit: Array

    @classmethod
    def of(cls, view: View, label: Integers, simultaneous: bool) -> "_Bins":
        finer, group, unit = view.apart(label)
        n = finer.totals("confident")
        confidence, accuracy = (quotient(finer.totals(role), n) for role in ("confidence", "correct"))
        sums = finer.sums("correct"), finer.sums("confident"), finer.rows("confident")
        line = linearised(finer, *sums, accuracy, n)
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
        return cls(
            view,
            group,
            unit,
            finer.units.group_of,
            share,
            accuracy,
            gap,
            low,
            high,
            variance,
            line.influence,
        )

    def total(self, values: Array) -> Array:
        """Add up by group."""
        return added_up(self.group, values, self.view.units.groups)

    def largest(self) -> tuple[Array, Array, Array]:
        """The largest gap of each group with its limits, which hold for all bins at once."""
        least, most = self._distance(0.0)
        groups = self.view.units.groups
        value, low, high = (np.full(groups, -np.inf) for _ in range(3))
        for into, values in ((value, np.abs(self.gap)), (low, least), (high, most)):
            np.maximum.at(into, self.group, values)
        low, high = np.minimum(low, value), np.clip(high, value, 1.0)
        value, low, high = (np.where(np.isfinite(each), each, np.nan) for each in (value, low, high))
        return value, low, high

    def weighted(self, statistic: Statistic) -> tuple[Array, Array, Array]:
        """A mean of what follows from the bins, with its limits."""
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
        value, low, high = (np.where(known, each, np.nan) for each in (value, low, high))
        return value, low, high

    def _shared(self, statistic: Statistic) -> Array:
        """How much more the bins vary together than each for itself: units that have rows in several bins."""
        own = self._of_bins(statistic)
        apart = self.view.units.total(added_up(self.unit, own**2, len(self.view.units.group_of)))
        together = self.view.units.total(self.influence(statistic) ** 2)
        return np.where(apart > 0, np.maximum(1.0, quotient(together, apart)), 1.0)

    def _few_units(self) -> Array:
        """How much further than the normal Student's quantile reaches, for a variance between so many units."""
        units = self.view.units.total((self.view.sums("confident") != 0).astype(np.float64))
        return np.nan_to_num(student(units), nan=Z) / Z

    def influence(self, statistic: Statistic) -> Array:
        """What each unit of the whole adds to the error of a weighted mean."""
        return added_up(self.unit, self._of_bins(statistic), len(self.view.units.group_of))

    def _of_bins(self, statistic: Statistic) -> Array:
        """What each unit of a bin adds to it."""
        slope = 2 * self.gap if statistic == "reliability" else np.sign(self.gap)
        if statistic == "resolution":
            slope = 2 * (self.accuracy - self.total(self.share * self.accuracy)[self.group])
        return np.asarray((slope * self.share)[self.group_of] * self.per_unit)

    def _distance(self, centre: Array | float) -> tuple[Array, Array]:
        """The least and the largest distance from `centre` within the limits of each gap."""
        low, high = self.low - centre, self.high - centre
        inside = (low < 0) & (high > 0)
        least = np.where(inside, 0.0, np.minimum(np.abs(low), np.abs(high)))
        return least, np.maximum(np.abs(low), np.abs(high))


def _accuracy_limits(line: Linearised, group: Integers | None) -> tuple[Array, Array]:
    """Wilson limits of the bins' accuracies; those of all bins of a `group` at once where it is given (Bonferroni)."""
    n_eff = _size(line)
    z: Array | float = Z if group is None else _bonferroni(group)
    return wilson(np.where(line.value >= 1, n_eff, line.value * n_eff), n_eff, z)


def _bonferroni(group: Integers) -> Array:
    """The normal quantile of each bin with which the limits of all bins of its group hold at once."""
    from scipy.special import ndtri

    return np.asarray(-ndtri((1 - CONFIDENCE) / 2 / np.bincount(group)[group]))


def _size(line: Linearised) -> Array:
    """As many independent rows as would tell as much of each bin."""
    n_eff = np.minimum(effective_size(line, 0.0, 1.0, np.ones_like(line.value)), line.denominators)
    return np.where(line.single, line.denominators, n_eff)


def _mean_of_noisy(gap: Array, variance: Array) -> Array:
    """The mean size of what is normally distributed around a gap (the folded normal distribution)."""
    from scipy.special import ndtr

    deviation = np.sqrt(variance)
    with np.errstate(all="ignore"):
        z = np.where(deviation > 0, gap / deviation, np.inf)
        mean = deviation * np.sqrt(2 / np.pi) * np.exp(-(z**2) / 2) + gap * (1 - 2 * ndtr(-z))
    return np.where(deviation > 0, mean, gap)


def _without_noise(gap: Array, variance: Array) -> Array:
    """The gap whose mean size, with its noise, is the one seen; 0 where noise alone would make as much."""
    low, high = np.zeros_like(gap), gap.copy()
    for _ in range(40):
        middle = (low + high) / 2
        too_much = _mean_of_noisy(middle, variance) > gap
        low, high = np.where(too_much, low, middle), np.where(too_much, middle, high)
    return np.where(_mean_of_noisy(np.zeros_like(gap), variance) >= gap, 0.0, (low + high) / 2)


def ece(confidence: pl.Expr, correct: pl.Expr) -> CalibrationError:
    """Declare the expected calibration error in ten equal bins."""
    return CalibrationError(confidence, correct)


def ece_debiased(confidence: pl.Expr, correct: pl.Expr) -> CalibrationError:
    """Declare the expected calibration error less what noise alone adds, by a normal approximation in each bin."""
    return CalibrationError(confidence, correct, "debiased")


def mce(confidence: pl.Expr, correct: pl.Expr) -> CalibrationError:
    """Declare the maximum calibration error in ten equal bins."""
    return CalibrationError(confidence, correct, "maximum")


def ece_adaptive(confidence: pl.Expr, correct: pl.Expr) -> CalibrationError:
    """Declare the expected calibration error in bins of equal mass."""
    return CalibrationError(confidence, correct, equal_mass=True)
