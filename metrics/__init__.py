"""How results are measured: metrics declared as data, and pure functions that compute them over Polars frames.

A suite declares `Metric`s (`definition.py`) whose estimators say what is counted (`estimators.py`, `composite.py`,
`calibration.py`, `spread.py`, `jackknife.py`, `agreement.py`); `compute.measure` evaluates them for every (model,
judge) and slice. All uncertainty comes from how units differ (`units.py`), by the intervals of `intervals.py`;
`compare.py` pairs two sides on their units. Nothing here does I/O.
"""

from metrics.composite import Composite, MacroAverage, Parts, mean_defined
from metrics.compute import RELIABLE_FROM, measure
from metrics.definition import ENGINE_VERSION, Metric, definition_hash
from metrics.estimators import Count, Estimate, Maximum, Mean, Quantile, Rate, Ratio, Total
from metrics.spread import pooled_within, population_std

__all__ = [
    "ENGINE_VERSION",
    "RELIABLE_FROM",
    "Composite",
    "Count",
    "Estimate",
    "MacroAverage",
    "Maximum",
    "Mean",
    "Metric",
    "Parts",
    "Quantile",
    "Rate",
    "Ratio",
    "Total",
    "definition_hash",
    "mean_defined",
    "measure",
    "pooled_within",
    "population_std",
]
