"""How results are measured: metrics declared as data, and pure functions that compute them over Polars frames.

A suite declares `Metric`s (`definition.py`) whose estimators (`estimator.py`) say what is counted (`estimators.py`,
`weighted_rate.py`, `macro_average.py`, `composite.py`, `calibration.py`, `spread.py`, `jackknife.py`, `agreement.py`);
`compute.measure` evaluates them for every (model, judge) and slice (`inputs.py`, `slices.py`). All uncertainty comes
from how units differ (`units.py`), by the intervals of `intervals.py`; `values.py` gives values alone, and
`compare.py` pairs two sides on their units. Nothing here does I/O.
"""
