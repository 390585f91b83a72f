"""Exact limits: those that decide about a value, each of which leaves out the truth in half of a stated error."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from statistics import NormalDist

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from evalake.metrics.calibration import CalibrationError
from evalake.metrics.composite import MacroAverage
from evalake.metrics.compute import Metric, measure
from evalake.metrics.corrected import Corrected
from evalake.metrics.estimator import Estimate, Estimator, Jackknife, effective_size, jackknife
from evalake.metrics.estimators import Mean, Quantile, Quotient, Rate, Ratio
from evalake.metrics.intervals import Array, Z, student
from evalake.metrics.units import Denominator, View
from evalake.metrics.variance import Deviation, Repeats

ERROR = 0.05
"""How often a decision's two limits leave out the truth, at most: half of it to either side."""

ROUNDING = 1e-9

Bounds = tuple[float, float]


def clopper_pearson(successes: ArrayLike, n: ArrayLike, error: float = ERROR) -> tuple[Array, Array]:
    """Compute the exact limits of a proportion (Clopper and Pearson 1934): (low, high), NaN where n is 0.

    Neither number needs to be whole: clusters make effective trials.
    """
    from scipy.special import betaincinv

    k, trials = (np.asarray(x, np.float64) for x in (successes, n))
    with np.errstate(all="ignore"):
        low = np.where(k > 0, betaincinv(np.maximum(k, 1e-12), trials - k + 1, error / 2), 0.0)
        high = np.where(k < trials, betaincinv(k + 1, np.maximum(trials - k, 1e-12), 1 - error / 2), 1.0)
    return np.where(trials > 0, low, np.nan), np.where(trials > 0, high, np.nan)


def measure_exact(frame: pl.DataFrame, metrics: Sequence[Metric], error: float = ERROR) -> pl.DataFrame:
    """Measure metrics of every model and judge with the limits that decide, in the columns of `measure`.

    `units` is the number of equal units that tell as much (Kish 1965), rounded down.
    """
    return measure(frame, metrics, cluster="cluster", limits=partial(exact, error))


def exact(error: float, estimator: Estimator, view: View, known: Estimate) -> Estimate:
    """Move the ends of an interval to the limits that decide, each of which leaves out the truth in half of `error`.

    They rest on the variance of the jackknife over units, and on as many equal units as these are worth. They are never
    nearer than the interval. Of what has a range they are the exact ones of as many trials as have that variance, of
    amounts those of as many events; and where a mean has a range, two unseen units lie at its ends: few units may hide
    rare values.
    """
    if known.make_influence is None:
        return known
    if isinstance(estimator, Quantile):
        return replace(estimator.with_limits(view, error), units=np.floor(counted(view).effective + ROUNDING))
    (least, most), value, below = range_of(estimator), known.value, counted(view)
    alike = np.fmin(known.units, below.effective)
    is_deviation = (least, most) == (0.0, np.inf) and not isinstance(estimator, Quotient)
    of_squares = is_deviation or isinstance(estimator, Jackknife)
    z, t = NormalDist().inv_cdf(1 - error / 2), student(_of_squares(below) if of_squares else alike, 1 - error)
    with np.errstate(all="ignore"):
        unequal = np.fmax(np.nan_to_num(t / student(known.units, 1 - error), nan=1.0), 1.0)
        down, up = (z / Z * unequal * each for each in (value - known.ci_low, known.ci_high - value))
        if is_deviation:
            low, high = _of_deviation(estimator, view, value, below, t)
        else:
            se, bias, reach = _jackknifed(estimator, view, known, below, z)
            down, up = (np.hypot(each, t * np.sqrt(np.nan_to_num(se**2 - known.se**2))) for each in (down, up))
            if isinstance(estimator, Jackknife):
                down, up = down + np.maximum(bias, 0.0), up - np.minimum(bias, 0.0)
            if np.isfinite(most - least):
                few = 1 / unequal if isinstance(estimator, Rate) else z / t
                low, high = _of_trials(estimator, view, known, se, few, error)
            else:
                down, up = np.fmax(down, t * se + bias), np.fmax(up, t * se - bias)
                down, up = down - np.minimum(reach, 0.0), up + np.maximum(reach, 0.0)
                low, high = _of_events(value, se, below.effective, z / t, error) if least == 0 else (value, value)
    low, high = np.maximum(np.fmin(value - down, low), least), np.minimum(np.fmax(value + up, high), most)
    low, high = (np.where(np.isnan(known.ci_low), np.nan, end) for end in (low, high))
    return replace(known, units=np.floor(alike + ROUNDING), ci_low=low, ci_high=high)


_COUNTED = ("n", "rows", "of", "denominator", "confident", "known")
"""Inputs that tell which rows count, the one of the whole first."""


def counted(view: View) -> Denominator:
    """Add up the rows that count, by unit."""
    return view.over(next(each for each in _COUNTED if view.prefix + each in view.column_of))


def _jackknifed(
    estimator: Estimator, view: View, known: Estimate, below: Denominator, z: float
) -> tuple[Array, Array, Array]:
    """Compute the standard error, at least that of the estimate, the bias, and how far skewness bends (Johnson 1978).

    Those of correlations come from Fisher's scale. A mean of gaps varies as if all of them moved alike.
    """
    of_fisher, counts = isinstance(estimator, Jackknife), below.sums != 0
    influence, bias = jackknife(estimator, view, counts, np.arctanh if of_fisher else np.asarray)
    slope = 1 - known.value**2 if of_fisher else 1.0
    squares, cubes = (view.units.total(influence**power) for power in (2, 3))
    se = slope * np.sqrt(squares * view.units.stratified(influence, counts))
    if isinstance(estimator, CalibrationError):
        se = np.fmax(se, estimator.together(view))
    reach = np.nan_to_num(cubes / squares**1.5) * (1 + 2 * z**2) / 6 * se
    return np.fmax(known.se, se), slope * bias, reach


def _of_squares(below: Denominator) -> Array:
    """Compute how many equal units tell as much of squares: those of large units weigh more (Satterthwaite 1946)."""
    total, rows = below.units.total, below.rows
    return np.fmin(below.count, np.fmax(total(rows**2) ** 2 / total(rows**4), np.fmin(below.count, 2.0)))


def _of_deviation(estimator: Estimator, view: View, value: Array, below: Denominator, t: Array) -> tuple[Array, Array]:
    """Compute the limits of a deviation by the jackknife on the log scale.

    Squares tell little of their own tail: to the upper end one unseen unit adds as much as the largest seen.
    """
    units = view.units
    influence, bias = jackknife(estimator, view, below.sums != 0, np.log)
    variance, within = units.total(influence**2), units.stratified(influence, below.sums != 0)
    half, more = (t * np.sqrt(each * within) for each in (variance, variance + units.most(influence**2)))
    return value * np.exp(-bias - half), value * np.exp(-bias + more + more**2)


def _of_trials(
    estimator: Estimator, view: View, known: Estimate, se: Array, few: Array, error: float
) -> tuple[Array, Array]:
    """Compute the exact limits of as many trials as have a variance; `few` is what few, unequal units are worth."""
    least, most = range_of(estimator)
    if isinstance(estimator, Rate | Mean | Ratio):
        trials = known.n_eff
        if not isinstance(estimator, Rate):
            line = view.ratio("numerator", "denominator")
            size = effective_size(line, least, most, np.ones_like(se), getattr(estimator, "heaviest", None))
            trials = size / line.stratified
        trials = trials * few**2 * np.nan_to_num((known.se / se) ** 2, nan=1.0)
    else:
        agreed = np.fmin(known.n_eff, known.units)
        trials = _with_variance((known.value - least, most - known.value), se, few, agreed)
        if isinstance(estimator, MacroAverage):
            trials = np.fmin(trials, effective_size(view.ratio(*Rate.ratio), least, most, np.ones_like(se)))
    return _between(least, most, known.value, trials, error)


def _with_variance(to_ends: tuple[Array, Array], se: Array, few: Array, otherwise: Array) -> Array:
    """Compute how many trials have the variance of a value, given its distance to both ends of its range."""
    return np.where(se > 0, to_ends[0] * to_ends[1] * (few / np.where(se > 0, se, 1.0)) ** 2, otherwise)


def _between(least: float, most: float, value: Array, trials: Array, error: float) -> tuple[Array, Array]:
    """Compute the exact limits of a value between two ends."""
    known, share = np.nan_to_num(trials), np.clip((value - least) / (most - least), 0.0, 1.0)
    low, high = clopper_pearson(share * known, known, error)
    return least + (most - least) * low, least + (most - least) * high


def limits_of(known: Corrected, estimator: Estimator, error: float = ERROR) -> Bounds:
    """Compute the limits that decide about a corrected value, as those of a value that is not."""
    least, most = range_of(estimator)
    z = NormalDist().inv_cdf(1 - error / 2)
    value, se, units = (np.asarray(each, np.float64) for each in (known.value, known.se, known.units))
    trials = _with_variance((value - least, most - value), se, z / student(units, 1 - error), units)
    exactly = _between(least, most, value, trials, error)
    low, high = (known.value + z / Z * (end - known.value) for end in (known.ci_low, known.ci_high))
    return max(least, min(low, float(exactly[0]))), min(most, max(high, float(exactly[1])))


def _of_events(value: Array, se: Array, units: Array, few: Array, error: float) -> tuple[Array, Array]:
    """Compute the exact limits of a count of as many events as has the variance of a mean above 0 (Garwood 1936).

    Two unseen units are at 0.
    """
    from scipy.special import gammaincinv

    events = few**2 / ((se / value) ** 2 + 2 * units**-2.0)
    low, high = gammaincinv(events, error / 2), gammaincinv(events + 1, 1 - error / 2)
    return value * low / events, value * high / events


def range_of(estimator: Estimator) -> Bounds:
    """Find the range of an estimator's values; infinite where nothing bounds them."""
    if isinstance(estimator, Rate | MacroAverage | CalibrationError):
        return 0.0, 1.0
    if isinstance(estimator, Jackknife):
        return -1.0, 1.0
    if isinstance(estimator, Deviation | Repeats):
        return 0.0, (getattr(estimator, "high", np.inf) - getattr(estimator, "low", 0.0)) / 2
    return float(getattr(estimator, "low", -np.inf)), float(getattr(estimator, "high", np.inf))
