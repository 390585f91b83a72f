"""The engine: every metric of every (model, judge) and slice, from sums over units."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from core.errors import MetricError
from metrics.columns import Columns
from metrics.definition import Metric
from metrics.estimator import Estimate, estimated
from metrics.inputs import Inputs
from metrics.intervals import Integers
from metrics.slices import Slicing, units_of
from metrics.units import View

RELIABLE_FROM = 30
"""Units from here on make a metric `reliable`; a composite's least reliable part counts."""

MOST_THREADS = 2
"""Parts measured at once."""

PART_ROWS = 100_000
"""Rows of a part, from which on another begins: groups are measured in parts, whose sums stay in the caches."""

MEASURES: Mapping[str, pl.DataType] = {
    **dict.fromkeys(("slice", "slice_value", "metric"), pl.String()),
    "tier": pl.Int64(),
    "value": pl.Float64(),
    **dict.fromkeys(("n", "units"), pl.Int64()),
    **dict.fromkeys(("n_eff", "se", "ci_low", "ci_high"), pl.Float64()),
    "reliable": pl.Boolean(),
}

METRIC_ROWS: Mapping[str, pl.DataType] = {"model": pl.String(), "judge": pl.String(), **MEASURES}
"""The columns of what is measured of models and judges."""


def measure(
    frame: pl.LazyFrame | pl.DataFrame,
    metrics: Sequence[Metric],
    *,
    groups: Sequence[str] = ("model", "judge"),
    cluster: str | None = None,
) -> pl.DataFrame:
    """Compute every metric in every group and slice.

    Args:
        frame: One row per sample; at least the columns that the metrics, `groups`, their slices and `cluster` name.
        metrics: What to measure.
        groups: Columns that tell what is measured apart; null (no judge) is a group like any other.
        cluster: Column whose value makes samples one unit; without it each row is one.

    Returns:
        The columns `groups`, then `MEASURES`, ordered by group, metric (as declared), slice (as declared) and slice
        value. Slice "all" has slice_value ""; rows whose slice column is null are in no group of that slice. A metric
        without denominator is null with n = 0. The result depends on the rows, not on their order.

    Raises:
        MetricError: Names the metric that cannot be computed, and why.
    """
    inputs = Inputs.read(frame.lazy(), metrics, groups, cluster)
    results = [pl.DataFrame(schema=_schema(inputs, groups))]
    if not inputs.frame.is_empty():
        with ThreadPoolExecutor(MOST_THREADS) as threads:  # NumPy releases Python's lock
            of_parts = threads.map(partial(_measure_part, inputs, metrics, groups), _Part.all_of(inputs))
            results += [rows for of_part in of_parts for rows in of_part]
    order = [*groups, "metric number", "slice number", "slice_value"]
    return pl.concat(results).sort(order).drop("metric number", "slice number")


def metric_row(model: Any, judge: Any, metric: str, *, n: int, units: int, **numbers: float | None) -> dict[str, Any]:
    """Build a row in the columns METRIC_ROWS of a metric over all samples that `measure` does not compute."""
    of = {"model": model, "judge": judge, "slice": "all", "slice_value": "", "metric": metric}
    return {**dict.fromkeys(METRIC_ROWS), **of, "n": n, "units": units, "reliable": units >= RELIABLE_FROM, **numbers}


def _schema(inputs: Inputs, groups: Sequence[str]) -> dict[str, pl.DataType]:
    """List the columns of the metric rows of groups with their types, and the numbers that rows are ordered by."""
    keys = {group: inputs.frame.schema[f"column {group}"] for group in groups}
    return keys | dict(MEASURES) | {"metric number": pl.Int64(), "slice number": pl.Int64()}


@dataclass(frozen=True, eq=False)
class _Part:
    """Rows of whole groups, with the numbers of their groups and clusters, from the first to before the last."""

    first: int
    last: int
    group: Integers
    cluster: Integers

    @classmethod
    def all_of(cls, inputs: Inputs) -> "list[_Part]":
        """Cut the samples into parts."""
        cuts, group = [0], inputs.group
        for begin in np.flatnonzero(group[1:] != group[:-1]) + 1:
            if begin - cuts[-1] >= PART_ROWS:
                cuts.append(int(begin))
        return [cls(a, b, group[a:b], inputs.cluster[a:b]) for a, b in pairwise([*cuts, len(group)])]


def _measure_part(inputs: Inputs, metrics: Sequence[Metric], groups: Sequence[str], part: _Part) -> list[pl.DataFrame]:
    """Compute all metrics of whole groups: those of the same slices for all slices at once."""
    columns = Columns(inputs.rows(part.first, part.last))
    names = dict.fromkeys(name for metric in metrics for name in metric.slices)
    slicings = {name: Slicing.of(columns, name, groups) for name in names}
    results = []
    for slices in dict.fromkeys(metric.slices for metric in metrics):
        own = {number: metric for number, metric in enumerate(metrics) if metric.slices == slices}
        for together in [slices] if columns.rows < 2 * PART_ROWS else [(name,) for name in slices]:
            known = [slicings[name] for name in together if not slicings[name].keys.is_empty()]
            if known:
                view = View(columns, units_of(known, part.group, part.cluster), {})
                estimates = [
                    _estimate(metric, replace(view, column_of=inputs.columns[i]), known) for i, metric in own.items()
                ]
                results.append(_rows(known, own, estimates))
                view.forget()
    return results


def _estimate(metric: Metric, view: View, slicings: Sequence[Slicing]) -> Estimate:
    try:
        return estimated(metric.estimator, view)
    except MetricError as error:
        slices = " or ".join(each.name for each in slicings)
        raise MetricError(f"Metric {metric.name}, slice {slices}: {error}.") from error


def _rows(slicings: Sequence[Slicing], metrics: Mapping[int, Metric], estimates: Sequence[Estimate]) -> pl.DataFrame:
    """Build the result's rows of metrics, by their numbers, in the groups of slices that all of them have."""
    keys = pl.concat([each.keys.with_columns(slice=pl.lit(each.name)) for each in slicings])
    declared = next(iter(metrics.values())).slices
    slice_number = np.concatenate([np.full(each.keys.height, declared.index(each.name)) for each in slicings])
    numbers = {
        name: pl.Series(name, np.concatenate([getattr(each, name) for each in estimates]))
        for name in ("value", "n", "units", "n_eff", "se", "ci_low", "ci_high", "fewest")
    }
    of_metric = np.repeat(np.arange(len(metrics)), keys.height)
    names = pl.Series([metric.name for metric in metrics.values()])
    tiers = pl.Series([metric.tier for metric in metrics.values()], dtype=pl.Int64)
    known = [pl.when(pl.col(name).is_finite()).then(name).alias(name) for name in numbers]
    rows = keys[np.tile(np.arange(keys.height), len(metrics))].with_columns(**numbers).with_columns(*known)
    return rows.select(
        pl.exclude("slice", "slice_value", *numbers),
        "slice",
        "slice_value",
        names[of_metric].alias("metric"),
        tiers[of_metric].alias("tier"),
        "value",
        pl.col("n", "units").cast(pl.Int64),
        "n_eff",
        "se",
        "ci_low",
        "ci_high",
        (pl.col("fewest") >= RELIABLE_FROM).alias("reliable"),
        pl.Series("metric number", np.array([*metrics])[of_metric]),
        pl.Series("slice number", np.tile(slice_number, len(metrics))),
    )
