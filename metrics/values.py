"""Values alone, without uncertainty: formulas applied to the sums of each group."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from metrics.columns import Columns, added_up
from metrics.definition import Metric
from metrics.inputs import Inputs
from metrics.intervals import Array, Integers
from metrics.slices import Slicing
from metrics.units import Units, View


@dataclass(frozen=True, eq=False)
class _Totals:
    """The sums of each group, in the form of as many draws (a `Draw`)."""

    view: View

    def sums(self, role: str) -> Array:
        """Add up an input in each group, [groups]."""
        return self.view.totals(role)

    def apart(self, role: str, label: Integers) -> Array:
        """Add up an input in each group for every label above 0 of the view's rows, [groups, labels]."""
        units, labels = self.view.units, int(label.max(initial=0)) + 1
        summed = added_up(units.row_group * labels + label, self.view.values(role), units.groups * labels)
        return summed.reshape(units.groups, labels)[:, 1:]

    def part(self, name: str) -> "_Totals":
        """Narrow the sums to the inputs of one part of a composite."""
        return _Totals(self.view.part(name))


def values(frame: pl.DataFrame, metrics: Sequence[Metric], groups: Sequence[str]) -> pl.DataFrame:
    """Compute functions of sums, such as composites of rates and means, over all rows of each group.

    Returns:
        The columns `groups` and one for each metric, null where it is undefined, in order of group.

    Raises:
        MetricError: Names the metric that cannot be computed, and why.
    """
    inputs = Inputs.read(frame.lazy(), metrics, groups, None)
    if inputs.frame.is_empty():
        return frame.select(groups).clear().with_columns(pl.lit(0.0).alias(metric.name) for metric in metrics)
    columns = Columns(inputs.rows())
    slicing = Slicing.of(columns, "all", groups)
    row = np.arange(inputs.frame.height)
    units = Units.in_order(row, slicing.group, slicing.keys.height, np.zeros_like(row))
    view = View(columns, units, {})
    computed = {
        metric.name: pl.Series(metric.estimator.drawn(_Totals(replace(view, column_of=columns_of)))).fill_nan(None)
        for metric, columns_of in zip(metrics, inputs.columns, strict=True)
    }
    return slicing.keys.drop("slice_value").with_columns(**computed)
