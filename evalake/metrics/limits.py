"""Limits as wide as missing rows could make them.

Missing is not random: a server that fails on hard items leaves the easy ones. So a decision holds only where it holds
for any missing rows (Manski 1989): the limits of the worst and the best case.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import polars as pl

from evalake.metrics.calibration import CalibrationError
from evalake.metrics.columns import Columns
from evalake.metrics.compare import with_holm
from evalake.metrics.composite import Composite
from evalake.metrics.compute import Metric, measure
from evalake.metrics.estimator import Estimator
from evalake.metrics.estimators import Count, Mean, Rate, Ratio
from evalake.metrics.exact import ERROR, Bounds, clopper_pearson, range_of
from evalake.metrics.inputs import Inputs
from evalake.metrics.slices import Slicing
from evalake.metrics.units import Units, View

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


def bounds(frame: pl.DataFrame, metric: Metric, missing: int, opened: pl.DataFrame | None = None) -> Bounds | None:
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


def _every_bounds(frame: pl.DataFrame, metrics: Sequence[Metric], unknown: Unknown) -> list[Bounds | None]:
    """Compute the bounds of several metrics, reading their inputs once."""
    inputs = Inputs.read(frame.lazy(), metrics, (), None)
    columns = Columns(inputs.frame)
    units = Units.of(Slicing.of(columns, "all", ()).group, 1, inputs.cluster)
    views = (View(columns, units, named) for named in inputs.columns)
    return [_bounds(each.estimator, view, unknown, frame) for each, view in zip(metrics, views, strict=True)]


def open_bounds(frame: pl.DataFrame, metric: Metric, unknown: Unknown) -> Bounds | None:
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


def _bounds(estimator: Estimator, view: View, unknown: Unknown, frame: pl.DataFrame) -> Bounds | None:
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
    """What one model answered, as one judge sees it: its rows, the samples of those that are not there, open rows."""

    rows: pl.DataFrame
    gone: Sequence[str] = ()
    opened: pl.DataFrame | None = None

    def is_whole(self, metric: Metric) -> bool:
        """Tell whether nothing is missing that the metric counts."""
        nothing = not self.gone and (self.opened is None or self.opened.is_empty())
        return nothing and not undecided(metric.estimator, self.rows)

    def among(self, samples: set[str], pair: str, where: pl.Expr | None) -> "Answered":
        """Narrow it to samples, and its rows to a slice; which slice a row is of that is not there nobody knows."""
        ours = pl.col(pair).is_in(list(samples))
        ours = ours if where is None else ours & where
        opened = None if self.opened is None else self.opened.filter(ours)
        return Answered(self.rows.filter(ours), [each for each in self.gone if each in samples], opened)

    def samples(self, pair: str) -> set[str]:
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
