"""Limits that decide about a value: exact ones, and those as wide as missing rows could make them.

Exact limits each leave out the truth in half of a stated error.

Missing is not random: a server that fails on hard items leaves the easy ones. So a decision holds only where it holds
for any missing rows (Manski 1989): the limits of the worst and the best case.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from evalake.metrics.calibration import CalibrationError
from evalake.metrics.columns import Columns, Inputs
from evalake.metrics.compare import with_holm
from evalake.metrics.composite import Composite, MacroAverage
from evalake.metrics.compute import Metric, Slicing, measure
from evalake.metrics.corrected import Corrected
from evalake.metrics.estimator import Estimate, Estimator, Jackknife, effective_size, jackknife
from evalake.metrics.estimators import Count, Mean, Quantile, Quotient, Rate, Ratio
from evalake.metrics.intervals import Array, Z, student
from evalake.metrics.units import Denominator, Units, View
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


def measure_exact(frame: pl.DataFrame | pl.LazyFrame, metrics: Sequence[Metric], error: float = ERROR) -> pl.DataFrame:
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


# Limits that hold for any missing rows.


Ends = tuple[float | None, float | None]

Unknown = tuple[int, pl.DataFrame | None]
"""The number of absent rows, and the present rows with unknown values."""


def widened(row: Mapping[str, Any], metric: Metric, ends: Bounds | None, error: float = ERROR) -> Ends:
    """Widen the limits of a measured row to hold for any missing values; none where nothing bounds these."""
    value, low, high = row["value"], row["ci_low"], row["ci_high"]
    if ends is None or low is None or high is None:
        return low, high
    least, most = ends
    if not np.isfinite(most - least):
        return None, None
    if type(metric.estimator) is Rate and row["n_eff"]:
        (lowest, _), (_, highest) = (clopper_pearson(end * row["n_eff"], row["n_eff"], error) for end in ends)
        return min(low, float(lowest)), max(high, float(highest))
    return low - (value - least), high + (most - value)


def bounds(
    frame: pl.DataFrame | pl.LazyFrame, metric: Metric, missing: int, opened: pl.DataFrame | None = None
) -> Bounds | None:
    """Compute the lowest and the highest value that a metric can have once all rows are known.

    Args:
        frame: The rows of one model and judge.
        metric: The metric, over all these rows.
        missing: How many rows are not there at all.
        opened: Those of the rows without a judgement or decision: the metric counts one as missing if it lacks its
            value and may count.

    Returns:
        For rates, means and ratios what extreme rows would make of them, none of which weighs more than the heaviest
        known one; for composites what extremes of their parts would; the quantity's whole range for other statistics
        that have one; None where it has no range.
    """
    return _every_bounds(frame, [metric], (missing, opened))[0]


def _every_bounds(
    frame: pl.DataFrame | pl.LazyFrame, metrics: Sequence[Metric], unknown: Unknown
) -> list[Bounds | None]:
    """Compute the bounds of several metrics, reading their inputs once."""
    inputs = Inputs.read([frame.lazy()], metrics, (), None)
    columns = Columns(inputs.frame)
    units = Units.of(Slicing.of(columns, "all", ()).group, 1, inputs.cluster)
    views = (View(columns, units, named) for named in inputs.columns)
    return [_bounds(each.estimator, view, unknown, frame) for each, view in zip(metrics, views, strict=True)]


def open_bounds(frame: pl.DataFrame | pl.LazyFrame, metric: Metric, unknown: Unknown) -> Bounds | None:
    """Compute the bounds of a metric; None where it misses nothing, infinite where it has no range."""
    missing, opened = unknown
    if not missing and (opened is None or opened.is_empty()) and not undecided(metric.estimator, frame):
        return None
    return bounds(frame, metric, missing, opened) or (-np.inf, np.inf)


def undecided(estimator: Estimator, frame: pl.DataFrame | pl.LazyFrame) -> int:
    """Count the trials of known rows that nobody decided, like findings without a majority of a panel."""
    lazy = frame.lazy()
    return sum(int(lazy.select(each.sum()).collect().item() or 0) for each in undecided_trials(estimator))


def undecided_trials(estimator: Estimator) -> Iterator[pl.Expr]:
    """Yield what counts, in each row, the trials of an estimator and of its parts that nobody decided."""
    if isinstance(estimator, Composite):
        for part in estimator.parts.values():
            yield from undecided_trials(part)
    elif (of_row := getattr(estimator, "undecided", None)) is not None:
        yield of_row


def _bounds(estimator: Estimator, view: View, unknown: Unknown, frame: pl.DataFrame | pl.LazyFrame) -> Bounds | None:
    if isinstance(estimator, Composite):
        parts = {name: _bounds(part, view.part(name), unknown, frame) for name, part in estimator.parts.items()}
        return _of_composite(estimator, {name: part for name, part in parts.items() if part is not None}, len(parts))
    missing = _missing(estimator, unknown)
    if isinstance(estimator, Count):
        counted = float(view.totals("of")[0])
        return counted, counted + missing
    low, high = range_of(estimator)
    if not np.isfinite(high - low):
        return None
    if isinstance(estimator, CalibrationError) and estimator.statistic == "mean" and not estimator.equal_mass:
        total, rows, _ = _sums(estimator, view)
        return max(0.0, (total - missing) / (rows + missing)), min(1.0, (total + missing) / (rows + missing))
    if not isinstance(estimator, Rate | Mean | Ratio):
        return low, high
    total, rows, heaviest = _sums(estimator, view)
    more = missing * heaviest + undecided(estimator, frame)
    if rows + more == 0:
        return (low, high) if missing else None
    lowest, highest = ((total + more * end) / (rows + more) for end in (low, high))
    return lowest, highest


def _sums(estimator: Estimator, view: View) -> tuple[float, float, float]:
    """Compute the sums above and below of a ratio, and the heaviest row below, at least 1."""
    if isinstance(estimator, CalibrationError):
        rows = float(view.totals("confident")[0])
        value = float(estimator.estimate(view).value[0])
        return (value * rows if rows else 0.0), rows, 1.0
    above, below = Rate.ratio if isinstance(estimator, Rate) else Mean.ratio
    weights = np.asarray(view.values(below), np.float64)
    heaviest = max(float(weights.max(initial=1.0)), getattr(estimator, "heaviest", None) or 1.0)
    return float(view.totals(above)[0]), float(view.totals(below)[0]), heaviest


def _missing(estimator: Estimator, unknown: Unknown) -> int:
    """Count the rows that may count and whose value is unknown."""
    missing, opened = unknown
    if opened is None or opened.is_empty():
        return missing
    match estimator:
        case Rate():
            value, where = estimator.successes, estimator.of
        case Mean():
            value, where = estimator.quantity, estimator.where
        case Ratio():
            value, where = estimator.denominator, pl.lit(True)
        case _:
            return missing + opened.height
    may_count = where.cast(pl.Float64).fill_null(1.0) > 0
    return missing + int(opened.select((value.is_null() & may_count).sum()).item())


def _of_composite(estimator: Composite, parts: Mapping[str, Bounds], needed: int) -> Bounds | None:
    """Compute the extremes of a function that rises or falls with each part: they lie where each part is at an end."""
    if len(parts) < needed:
        return estimator.low, estimator.high
    corners = np.array(list(product(*parts.values())))
    with np.errstate(all="ignore"):
        values = np.asarray(estimator.function(dict(zip(parts, corners.T, strict=True))))
    known = values[np.isfinite(values)]
    if not len(known):
        return None
    return float(max(known.min(), estimator.low)), float(min(known.max(), estimator.high))


def within(limits: Ends, estimator: Estimator) -> Ends:
    """Cut limits off at the range of an estimator's values."""
    (low, high), (least, most) = limits, range_of(estimator)
    return None if low is None else max(low, least), None if high is None else min(high, most)


# Differences of two sides; each may lack rows.


@dataclass(frozen=True)
class Answered:
    """What one model answered, as one judge sees it: its rows, the samples of those that are not there, open rows.

    All name samples alike: by texts, or by hashes.
    """

    rows: pl.DataFrame
    gone: Sequence[str | int] = ()
    opened: pl.DataFrame | None = None

    def is_whole(self, metric: Metric) -> bool:
        """Tell whether nothing is missing that the metric counts."""
        nothing = not self.gone and (self.opened is None or self.opened.is_empty())
        return nothing and not undecided(metric.estimator, self.rows)

    def among(self, samples: set[str | int], pair: str, where: pl.Expr | None) -> "Answered":
        """Narrow it to samples, and its rows to a slice; which slice a row is of that is not there nobody knows."""
        ours = pl.col(pair).is_in(list(samples))
        ours = ours if where is None else ours & where
        opened = None if self.opened is None else self.opened.filter(ours)
        return Answered(self.rows.filter(ours), [each for each in self.gone if each in samples], opened)

    def samples(self, pair: str) -> set[str | int]:
        """List the samples that were asked."""
        return {*self.rows[pair], *self.gone}

    def bounds(self, metrics: Sequence[Metric]) -> list[Bounds | None]:
        """Compute the lowest and highest value of each metric; None where nothing bounds it."""
        whole = [each for each in metrics if self.is_whole(each)]
        others = [each for each in metrics if each not in whole]
        known = measure(self.rows, whole, groups=()).select("metric", "value").iter_rows() if whole else ()
        found = {name: (value, value) for name, value in known if value is not None}
        if others and not self.rows.is_empty():
            ends = _every_bounds(self.rows, others, (len(self.gone), self.opened))
            found |= {each.name: end for each, end in zip(others, ends, strict=True) if end is not None}
        return [found.get(each.name) for each in metrics]


def bounds_of_differences(
    differences: Sequence[float | None],
    metrics: Sequence[Metric],
    first: Answered,
    second: Answered,
    pair: str = "sample_hash",
    where: pl.Expr | None = None,
) -> list[Ends]:
    """Compute the lowest and highest difference in each metric on samples that both were asked, for any missing values.

    It is the difference itself where nothing is missing, none where nothing bounds it. `where` is a slice.
    """
    is_open = [not (first.is_whole(each) and second.is_whole(each)) for each in metrics]
    if not any(is_open):
        return [(each, each) for each in differences]
    both = first.samples(pair) & second.samples(pair)
    ends = zip(*(side.among(both, pair, where).bounds(metrics) for side in (first, second)), strict=True)
    return [
        _ends(difference, a, b) if opened and difference is not None else (difference, difference)
        for difference, opened, (a, b) in zip(differences, is_open, ends, strict=True)
    ]


def _ends(difference: float, a: Bounds | None, b: Bounds | None) -> Ends:
    return (None, None) if a is None or b is None else (min(difference, a[0] - b[1]), max(difference, a[1] - b[0]))


def left_open(row: Mapping[str, Any]) -> dict[str, Any]:
    """Widen a compared row's interval by its bounds, and drop its p values where what is missing can hold 0.

    Args:
        row: difference, ci_low, ci_high, p, maybe p_holm or p_adjusted, and bound_low and bound_high: the difference
            itself where nothing is missing.
    """
    at = row["difference"]
    if at is None or (row["bound_low"], row["bound_high"]) == (at, at):
        return dict(row)
    p_values = [name for name in ("p", "p_holm", "p_adjusted") if name in row]
    nothing = dict.fromkeys(("ci_low", "ci_high", *p_values))
    if row["bound_low"] is None or row["ci_low"] is None or row["ci_high"] is None:
        return dict(row) | nothing
    low, high = row["ci_low"] + row["bound_low"] - at, row["ci_high"] + row["bound_high"] - at
    return dict(row) | (nothing if low <= 0 <= high else {}) | {"ci_low": low, "ci_high": high}


def adjusted(rows: pl.DataFrame) -> pl.DataFrame:
    """Adjust the p values of compared rows over all of them (Holm), and drop what missing items could undo."""
    known = with_holm(rows)
    return pl.DataFrame([left_open(row) for row in known.iter_rows(named=True)], schema=known.schema)
