"""Metrics of what replies took, which every suite has whose result rows keep it."""

from collections.abc import Container, Iterator

import polars as pl

from contracts.contract import Contract
from metrics.definition import Metric
from metrics.estimators import Total

_TOKENS = ("input_tokens", "output_tokens")


def usage_metrics(results: Contract, declared: Container[str]) -> Iterator[Metric]:
    """Yield the totals of cost and tokens by the columns of the result rows, except those declared already."""
    costs = [name for name in ("cost_usd", "judge_cost_usd") if name in results.column]
    if costs and "cost_usd_total" not in declared:
        total = pl.sum_horizontal(map(pl.col, costs), ignore_nulls=False)
        yield Metric("cost_usd_total", Total(total), description="Null if any price is unknown.")
    for name in _TOKENS:
        if name in results.column and name not in declared:
            yield Metric(name, Total(pl.col(name)), description="Null if any count is unknown.")
