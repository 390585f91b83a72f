"""How results are measured: metrics declared as data, and pure functions that compute them over Polars frames.

A suite declares `Metric`s (`definition.py`) whose estimators say what is counted (`estimators.py`, `composite.py`,
`calibration.py`); `compute.measure` evaluates them for every (model, judge) and slice, with intervals (`intervals.py`,
`bootstrap.py` over rows, `clusters.py` over clusters). `agreement.py` holds the statistics of several raters. Nothing
here does I/O.
"""

from metrics.composite import Composite, Sums, macro_average, mean_defined, population_std, ratio
from metrics.compute import RELIABLE_FROM, measure
from metrics.definition import Metric, definition_hash
from metrics.estimators import Count, Estimate, Maximum, Mean, Quantile, Rate, Total

__all__ = [
    "RELIABLE_FROM",
    "Composite",
    "Count",
    "Estimate",
    "Maximum",
    "Mean",
    "Metric",
    "Quantile",
    "Rate",
    "Sums",
    "Total",
    "definition_hash",
    "macro_average",
    "mean_defined",
    "measure",
    "population_std",
    "ratio",
]
