"""The engine: every metric of every (model, judge) and slice, one aggregation a slice and one pass a composite."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from contracts.errors import MetricError
from metrics.cells import estimate_group, find_cells, group_cells
from metrics.composite import Composite
from metrics.definition import Metric
from metrics.estimators import Estimate

RELIABLE_FROM = 30
"""Denominators from here on make a metric `reliable`."""

MEASURES: Mapping[str, pl.DataType] = {
    "slice": pl.String(),
    "slice_value": pl.String(),
    "metric": pl.String(),
    "tier": pl.Int64(),
    "value": pl.Float64(),
    "n": pl.Int64(),
    "se": pl.Float64(),
    "ci_low": pl.Float64(),
    "ci_high": pl.Float64(),
    "reliable": pl.Boolean(),
}


def measure(
    frame: pl.LazyFrame | pl.DataFrame,
    metrics: Sequence[Metric],
    *,
    seed: int,
    groups: Sequence[str] = ("model", "judge"),
    cluster: str | None = None,
    draws: int = 2000,
) -> pl.DataFrame:
    """Every metric in every group and slice: the columns `groups`, then `MEASURES`.

    frame    one row per sample; at least the columns that the metrics, `groups`, their slices and `cluster` name
    groups   columns that tell what is measured apart; null (no judge) is a group like any other
    cluster  column of what samples hang together by; bootstraps then resample clusters, formulas do not change
    draws    bootstrap draws per composite metric

    A row of the result is ordered by group, metric (as declared), slice (as declared) and slice value. Slice "all" has
    slice_value ""; rows whose slice column is null are in no group of that slice. A metric without denominator is null
    with n = 0. The result depends on the rows, not on their order, and on `seed`; the random numbers of a metric
    depend on no other metric. Raises MetricError naming the metric that cannot be computed, and why.
    """
    inputs = _Inputs.read(frame.lazy(), metrics, groups, cluster)
    names = dict.fromkeys(name for metric in metrics for name in metric.slices)
    slicings = {name: _Slicing.of(inputs.frame, name, groups) for name in names}
    results = [pl.DataFrame(schema=inputs.result_schema(groups))]
    if not inputs.frame.is_empty():
        for slicing in slicings.values():
            results += _summaries(inputs, slicing, metrics)
        for family in _families(inputs, metrics):
            results += _composites(inputs, slicings, metrics, family, seed, draws)
    order = [*groups, "metric number", "slice number", "slice_value"]
    return pl.concat(results).sort(order).drop("metric number", "slice number")


@dataclass(frozen=True, eq=False)
class _Inputs:
    """The metrics' inputs, evaluated for every row once; equal expressions share a column."""

    frame: pl.DataFrame
    columns: Sequence[Mapping[str, str]]
    """Per metric: from the name of an input to its column in `frame`."""
    cluster: pl.Series | None

    @classmethod
    def read(
        cls, lazy: pl.LazyFrame, metrics: Sequence[Metric], groups: Sequence[str], cluster: str | None
    ) -> "_Inputs":
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
            columns.append({})
            for role, expression in _typed_inputs(metric, nothing).items():
                text = str(expression.meta.serialize(format="json"))
                column = column_of.setdefault(text, f"input {len(column_of)}")
                selected[column] = expression
                owner.setdefault(column, metric.name)
                columns[-1][role] = column
        frame = lazy.select(**selected).collect()
        _refuse_non_finite(frame, owner)
        return cls(frame, columns, _cluster_numbers(frame, cluster))

    def column(self, metric: int) -> Callable[[str], pl.Expr]:
        """From the name of one of the metric's inputs to its column."""
        return lambda role: pl.col(self.columns[metric][role])

    def result_schema(self, groups: Sequence[str]) -> dict[str, pl.DataType]:
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
        if role in ("by", "strata") or kind == pl.Boolean or kind.is_integer():
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


def _cluster_numbers(frame: pl.DataFrame, cluster: str | None) -> pl.Series | None:
    if cluster is None:
        return None
    column = frame[f"column {cluster}"]
    if column.null_count():
        raise MetricError(f"{column.null_count()} samples have no {cluster}, the column of their cluster.")
    return column.rank("dense")


@dataclass(frozen=True, eq=False)
class _Slicing:
    """The groups of one slice: `keys` has one row per group, in order; `group` numbers each sample's, null for none."""

    name: str
    keys: pl.DataFrame
    group: pl.Series

    @classmethod
    def of(cls, frame: pl.DataFrame, name: str, groups: Sequence[str]) -> "_Slicing":
        value = pl.lit("") if name == "all" else pl.col(f"column {name}").cast(pl.String)
        keys = frame.select(*[pl.col(f"column {group}").alias(group) for group in groups], slice_value=value)
        member = pl.col("slice_value").is_not_null()
        group = keys.select(group=pl.when(member).then(pl.struct(pl.all())).rank("dense") - 1).to_series()
        keys = keys.with_columns(group).drop_nulls("group").unique("group").sort("group").drop("group")
        return cls(name, keys, group)

    def rows(self, number: int, metric: Metric, estimate: Estimate) -> pl.DataFrame:
        """The result's rows for one metric in this slice's groups."""
        numbers = {"value": estimate.value, "se": estimate.se, "ci_low": estimate.ci_low, "ci_high": estimate.ci_high}
        columns = {k: pl.Series(np.where(np.isfinite(v), v, np.nan)).fill_nan(None) for k, v in numbers.items()}
        return self.keys.select(
            pl.exclude("slice_value"),
            pl.lit(self.name).alias("slice"),
            "slice_value",
            pl.lit(metric.name).alias("metric"),
            pl.lit(metric.tier, dtype=pl.Int64).alias("tier"),
            columns["value"].alias("value"),
            pl.Series("n", estimate.n.astype(np.int64)),
            *[columns[name].alias(name) for name in ("se", "ci_low", "ci_high")],
            pl.Series("reliable", estimate.n >= RELIABLE_FROM),
            pl.lit(number, dtype=pl.Int64).alias("metric number"),
            pl.lit(metric.slices.index(self.name), dtype=pl.Int64).alias("slice number"),
        )


def _summaries(inputs: _Inputs, slicing: _Slicing, metrics: Sequence[Metric]) -> list[pl.DataFrame]:
    """All metrics of one slice that follow from aggregates, in one aggregation."""
    chosen = [
        (i, metric, metric.estimator)
        for i, metric in enumerate(metrics)
        if slicing.name in metric.slices and not isinstance(metric.estimator, Composite)
    ]
    aggregates = {
        f"{i} {name}": aggregate.cast(pl.Float64)
        for i, _, estimator in chosen
        for name, aggregate in estimator.aggregates(inputs.column(i)).items()
    }
    members = inputs.frame.with_columns(slicing.group).drop_nulls("group")
    grouped = members.group_by("group").agg(**aggregates).sort("group")
    rows = []
    for i, metric, estimator in chosen:
        numbers = {name: grouped[f"{i} {name}"].fill_null(np.nan).to_numpy() for name in estimator.aggregates(pl.col)}
        try:
            rows.append(slicing.rows(i, metric, estimator.estimate(numbers)))
        except MetricError as error:
            raise MetricError(f"Metric {metric.name}, slice {slicing.name}: {error}.") from error
    return rows


def _families(inputs: _Inputs, metrics: Sequence[Metric]) -> list[list[int]]:
    """The composite metrics by what they sum: those that differ in their function only have their cells in common."""
    families: dict[tuple[tuple[str, str], ...], list[int]] = {}
    for i, metric in enumerate(metrics):
        if isinstance(metric.estimator, Composite):
            families.setdefault(tuple(inputs.columns[i].items()), []).append(i)
    return list(families.values())


def _composites(
    inputs: _Inputs,
    slicings: Mapping[str, _Slicing],
    metrics: Sequence[Metric],
    family: Sequence[int],
    seed: int,
    draws: int,
) -> list[pl.DataFrame]:
    """A family of composite metrics in all their slices: the samples are read once, then counts are."""
    composites = {i: estimator for i in family if isinstance(estimator := metrics[i].estimator, Composite)}
    cells = find_cells(inputs.frame, composites[family[0]], inputs.columns[family[0]])
    rows = []
    for name, slicing in slicings.items():
        members = [i for i in family if name in metrics[i].slices]
        groups = group_cells(slicing.group, cells, inputs.cluster) if members else {}
        for i in members:
            estimates = np.empty((len(groups), 5))
            for number, group in groups.items():
                rng = _random_numbers(seed, metrics[i].name, name, slicing.keys.row(number))
                try:
                    estimates[number] = estimate_group(composites[i], cells, group, draws, rng)
                except MetricError as error:
                    raise MetricError(f"Metric {metrics[i].name}, slice {name}: {error}.") from error
            rows.append(slicing.rows(i, metrics[i], Estimate(*estimates.T)))
    return rows


def _random_numbers(seed: int, *names: object) -> np.random.Generator:
    """A generator of its own for each thing that is named, whatever else is measured beside it."""
    digest = hashlib.sha256(json.dumps([seed, *names], default=str).encode()).digest()
    return np.random.default_rng(int.from_bytes(digest))
