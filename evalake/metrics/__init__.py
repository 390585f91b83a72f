"""How results are measured: metrics declared as data, and pure functions that compute them over Polars frames.

A suite declares `Metric`s (`compute.py`) whose estimators (`estimator.py`) say what is counted (`estimators.py`,
`composite.py`, `calibration.py`, `variance.py`, `agreement.py`); `compute.measure` evaluates them for every
(model, judge) and slice of their inputs (`columns.py`). All uncertainty comes from how units differ (`units.py`), by
the intervals of `intervals.py`; `compare.py` pairs two sides on their units. Nothing here does I/O.
"""
