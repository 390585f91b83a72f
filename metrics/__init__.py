"""How results are measured: metrics declared as data, and pure functions that compute them over Polars frames.

A suite declares `Metric`s (`definition.py`) whose estimators (`estimator.py`) say what is counted (`estimators.py`,
`weighted_rate.py`, `macro_average.py`, `composite.py`, `calibration.py`, `spread.py`, `jackknife.py`, `agreement.py`);
`compute.measure` evaluates them for every (model, judge) and slice (`inputs.py`, `slices.py`). All uncertainty comes
from how units differ (`units.py`), by the intervals of `intervals.py`; `values.py` gives values alone, and
`compare.py` pairs two sides on their units. Nothing here does I/O.
"""

from metrics.composite import Composite, Parts, mean_defined
from metrics.compute import RELIABLE_FROM, measure
from metrics.definition import ENGINE_VERSION, Metric, definition_hash
from metrics.estimator import Estimate
from metrics.estimators import Count, Maximum, Mean, Quantile, Rate, Ratio, Total
from metrics.macro_average import MacroAverage
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
