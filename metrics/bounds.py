"""Bounds of a metric whatever missing rows would have been: they may lie in its denominator or not, best or worst."""

from collections.abc import Mapping
from itertools import product

import numpy as np
import polars as pl

from metrics.columns import Columns
from metrics.composite import Composite
from metrics.definition import Metric
from metrics.estimator import Estimator
from metrics.estimators import Mean, Rate, is_share_of_rows
from metrics.inputs import Inputs
from metrics.macro_average import MacroAverage
from metrics.slices import Slicing
from metrics.units import Units, View

Bounds = tuple[float, float]


def bounds(frame: pl.DataFrame, metric: Metric, missing: int) -> Bounds | None:
    """Compute the lowest and the highest value that a metric can have once `missing` more rows are known.

    Args:
        frame: The rows that are known, of one model and judge.
        metric: The metric, over all samples.
        missing: How many rows are unknown.

    Returns:
        For rates of rows and bounded means what extreme rows would make of them, for composites what extremes of their
        parts would; the quantity's whole range where one row may weigh any amount; None where it has no range.
    """
    inputs = Inputs.read(frame.lazy(), [metric], (), None)
    columns = Columns(inputs.rows())
    slicing = Slicing.of(columns, "all", ())
    view = View(columns, Units.of(slicing.group, 1, inputs.cluster), inputs.columns[0])
    return _bounds(metric.estimator, view, missing)


def _bounds(estimator: Estimator, view: View, missing: int) -> Bounds | None:
    if isinstance(estimator, Composite):
        parts = {name: _bounds(part, view.part(name), missing) for name, part in estimator.parts.items()}
        return _of_composite(estimator, {name: part for name, part in parts.items() if part is not None}, len(parts))
    low, high = _range(estimator)
    if not np.isfinite(high - low):
        return None
    if not (isinstance(estimator, Mean) or is_share_of_rows(estimator, view)):
        return low, high
    numerator, denominator = Mean.ratio if isinstance(estimator, Mean) else Rate.ratio
    total, rows = float(view.totals(numerator)[0]), float(view.totals(denominator)[0])
    if rows + missing == 0:
        return None
    ends = (total + missing * end for end in (low, high))
    lowest, highest = (end / (rows + missing) for end in ends)
    return lowest, highest


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


def _range(estimator: Estimator) -> Bounds:
    if isinstance(estimator, Rate | MacroAverage):
        return 0.0, 1.0
    return float(getattr(estimator, "low", -np.inf)), float(getattr(estimator, "high", np.inf))
