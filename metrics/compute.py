"""The engine: every metric of every (model, judge) and slice, from sums over units."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
import polars as pl

from core.errors import MetricError
from metrics.columns import Columns, numbered
from metrics.definition import Metric
from metrics.estimators import Estimate
from metrics.intervals import Integers
from metrics.units import Units, View

RELIABLE_FROM = 30
"""Units from here on make a metric `reliable`; a composite's least reliable part counts."""

MOST_THREADS = 2
"""Slices measured at once; each holds a few sums by unit."""

MEASURES: Mapping[str, pl.DataType] = {
    "slice": pl.String(),
    "slice_value": pl.String(),
    "metric": pl.String(),
    "tier": pl.Int64(),
    "value": pl.Float64(),
    "n": pl.Int64(),
    "units": pl.Int64(),
    "n_eff": pl.Float64(),
    "se": pl.Float64(),
    "ci_low": pl.Float64(),
    "ci_high": pl.Float64(),
    "reliable": pl.Boolean(),
}


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
        cluster: Column of what samples hang together by, which makes them one unit; without it each row is one.

    Returns:
        The columns `groups`, then `MEASURES`, ordered by group, metric (as declared), slice (as declared) and slice
        value. Slice "all" has slice_value ""; rows whose slice column is null are in no group of that slice. A metric
        without denominator is null with n = 0. The result depends on the rows, not on their order.

    Raises:
        MetricError: Names the metric that cannot be computed, and why.
    """
    inputs = Inputs.read(frame.lazy(), metrics, groups, cluster)
    names = dict.fromkeys(name for metric in metrics for name in metric.slices)
    results = [pl.DataFrame(schema=inputs.result_schema(groups))]
    if not inputs.frame.is_empty():
        columns = Columns(inputs.frame)
        own = np.arange(inputs.frame.height, dtype=np.int64)
        clusters = own if inputs.cluster is None else columns.ranks(inputs.cluster)
        slicings = [Slicing.of(inputs.frame, columns, name, groups) for name in names]
        with ThreadPoolExecutor(MOST_THREADS) as threads:  # NumPy lets go of the lock
            of_slices = threads.map(partial(_measure_slice, inputs, columns, clusters, metrics), slicings)
            results += [rows for of_slice in of_slices for rows in of_slice]
    order = [*groups, "metric number", "slice number", "slice_value"]
    return pl.concat(results).sort(order).drop("metric number", "slice number")


def _measure_slice(
    inputs: "Inputs", columns: Columns, cluster: Integers, metrics: Sequence[Metric], slicing: "Slicing"
) -> list[pl.DataFrame]:
    """Compute all metrics of one slice; nothing where no row has a value of it."""
    if slicing.keys.is_empty():
        return []
    units = Units.of(slicing.group, slicing.keys.height, cluster)
    kept: dict[tuple[str, str], np.ndarray] = {}
    rows = []
    for i, metric in enumerate(metrics):
        if slicing.name not in metric.slices:
            continue
        try:
            estimate = metric.estimator.estimate(View(columns, units, inputs.columns[i], _kept=kept))
        except MetricError as error:
            raise MetricError(f"Metric {metric.name}, slice {slicing.name}: {error}.") from error
        rows.append(slicing.rows(i, metric, estimate))
    return rows


@dataclass(frozen=True, eq=False)
class Inputs:
    """The metrics' inputs, evaluated for every row once; equal expressions share a column."""

    frame: pl.DataFrame
    columns: Sequence[Mapping[str, str]]
    """Per metric: from the name of an input to its column in `frame`."""
    cluster: str | None
    """The column in `frame` of what samples hang together by."""

    @classmethod
    def read(
        cls, lazy: pl.LazyFrame, metrics: Sequence[Metric], groups: Sequence[str], cluster: str | None
    ) -> "Inputs":
        """Evaluate the inputs of the metrics, the groups and the cluster for every row.

        Raises:
            MetricError: An input is not finite or of another type than its estimator takes, or a cluster is unknown.
        """
        names = [metric.name for metric in metrics]
        if repeated := {name for name in names if names.count(name) > 1}:
            raise MetricError(f"Two metrics are called {min(repeated)}; give each a name of its own.")
        schema = lazy.collect_schema()
        wanted = [*groups, *(s for m in metrics for s in m.slices if s != "all"), *([cluster] if cluster else [])]
        if missing := [column for column in wanted if column not in schema]:
            raise MetricError(f"The samples have no column {missing[0]}, which the metrics are grouped or sliced by.")

        selected: dict[str, pl.Expr] = {f"column {name}": pl.col(name) for name in wanted}
        owner: dict[str, str] = {}
        column_of: dict[str, str] = {}
        columns: list[dict[str, str]] = []
        nothing = pl.LazyFrame(schema=schema)
        for metric in metrics:
            typed = _typed_inputs(metric, nothing)
            texts = {role: expression.meta.serialize(format="json") for role, expression in typed.items()}
            columns.append({})
            for role, expression in typed.items():
                column = column_of.setdefault(texts[role], f"input {len(column_of)}")
                selected[column] = expression
                owner.setdefault(column, metric.name)
                columns[-1][role] = column
        frame = lazy.select(**selected).collect()
        _refuse_non_finite(frame, owner)
        if cluster is not None and (unknown := frame[f"column {cluster}"].null_count()):
            raise MetricError(f"{unknown} samples have no {cluster}, the column of their cluster.")
        return cls(frame, columns, None if cluster is None else f"column {cluster}")

    def result_schema(self, groups: Sequence[str]) -> dict[str, pl.DataType]:
        """Give the columns of the metric rows and their types, of these groups."""
        keys = {group: self.frame.schema[f"column {group}"] for group in groups}
        return keys | dict(MEASURES) | {"metric number": pl.Int64(), "slice number": pl.Int64()}


def _typed_inputs(metric: Metric, nothing: pl.LazyFrame) -> dict[str, pl.Expr]:
    """The metric's inputs as conditions, whole or floating-point numbers; labels as they are."""
    inputs = metric.estimator.inputs()
    try:
        types = nothing.select(**inputs).collect_schema()
    except pl.exceptions.PolarsError as error:
        reason = str(error).splitlines()[0]
        raise MetricError(f"Metric {metric.name} cannot be computed from these samples: {reason}") from error
    typed = {}
    for role, expression in inputs.items():
        kind = types[role]
        if role in metric.estimator.labels or kind == pl.Boolean or kind.is_integer():
            typed[role] = expression
        elif kind == pl.Null:
            typed[role] = expression.cast(pl.Boolean)
        elif kind.is_numeric() and role not in metric.estimator.counted:
            typed[role] = expression.cast(pl.Float64)
        else:
            needed = "a condition or a whole number" if role in metric.estimator.counted else "a number"
            raise MetricError(f"Metric {metric.name}: its input {role} must be {needed}, not {kind}.")
    return typed


def _refuse_non_finite(frame: pl.DataFrame, owner: Mapping[str, str]) -> None:
    """A NaN or infinite value is an error upstream, and would make a plausible number of nonsense."""
    floats = [column for column in owner if frame.schema[column].is_float()]
    if not floats or frame.is_empty():
        return
    counts = frame.select((~pl.col(floats).is_finite()).sum()).row(0, named=True)
    for column, count in counts.items():
        if count:
            raise MetricError(f"Metric {owner[column]}: {count} samples give it NaN or an infinite value.")


@dataclass(frozen=True, eq=False)
class Slicing:
    """The groups of one slice: `keys` has one row per group; `group` numbers each sample's, their number for none."""

    name: str
    keys: pl.DataFrame
    group: Integers

    @classmethod
    def of(cls, frame: pl.DataFrame, columns: Columns, name: str, groups: Sequence[str]) -> "Slicing":
        """Number the groups of a slice in the order of their keys."""
        sliced = None if name == "all" else f"column {name}"
        code = columns.ranks(sliced)
        none = int(code.max()) + 1
        if sliced is not None:
            code = np.where(code == 0, none, code)  # rows without a value have the last numbers
        known = code < none
        for group in groups:
            rank = columns.ranks(f"column {group}")
            width = int(rank.max()) + 1
            code = numbered(code * width + rank, (int(code.max()) + 1) * width)[0]
        count = int(code[known].max(initial=-1)) + 1
        first = np.empty(int(code.max()) + 1, dtype=np.int64)
        first[code[::-1]] = np.arange(frame.height)[::-1]
        value = pl.lit("") if sliced is None else pl.col(sliced).cast(pl.String)
        own = [pl.col(f"column {group}").alias(group) for group in groups]
        keys = frame[first[:count]].select(*own, slice_value=value)
        return cls(name, keys, np.minimum(code, count))

    def rows(self, number: int, metric: Metric, estimate: Estimate) -> pl.DataFrame:
        """The result's rows for one metric in this slice's groups."""
        numbers = {name: getattr(estimate, name) for name in ("value", "n_eff", "se", "ci_low", "ci_high")}
        columns = {k: pl.Series(np.where(np.isfinite(v), v, np.nan)).fill_nan(None) for k, v in numbers.items()}
        return self.keys.select(
            pl.exclude("slice_value"),
            pl.lit(self.name).alias("slice"),
            "slice_value",
            pl.lit(metric.name).alias("metric"),
            pl.lit(metric.tier, dtype=pl.Int64).alias("tier"),
            columns["value"].alias("value"),
            pl.Series("n", estimate.n.astype(np.int64)),
            pl.Series("units", estimate.units.astype(np.int64)),
            columns["n_eff"].alias("n_eff"),
            *[columns[name].alias(name) for name in ("se", "ci_low", "ci_high")],
            pl.Series("reliable", estimate.fewest >= RELIABLE_FROM),
            pl.lit(number, dtype=pl.Int64).alias("metric number"),
            pl.lit(metric.slices.index(self.name), dtype=pl.Int64).alias("slice number"),
        )
