"""The engine: every metric of every (model, judge) and slice, one aggregation a slice and one pass a composite."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
import polars as pl

from contracts.errors import MetricError
from metrics.cells import LABELS, estimate_group, find_cells, group_cells, rank_inputs
from metrics.clusters import Family, estimate_slice
from metrics.columns import Columns, Moments
from metrics.composite import Composite
from metrics.definition import Metric
from metrics.estimators import Estimate
from metrics.intervals import Integers
from metrics.units import Draws, numbered

RELIABLE_FROM = 30
"""Denominators from here on make a metric `reliable`."""

MOST_THREADS = 2
"""Slices, or families of composites, measured at once; each holds a few copies of its columns."""

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
    results = [pl.DataFrame(schema=inputs.result_schema(groups))]
    if not inputs.frame.is_empty():
        columns = Columns(inputs.frame)
        slicings = [_Slicing.of(inputs.frame, columns, name, groups) for name in names]
        for slicing in slicings:
            results += _summaries(inputs, columns, slicing, metrics)
        results += _composites(inputs, columns, slicings, metrics, seed, draws)
    order = [*groups, "metric number", "slice number", "slice_value"]
    return pl.concat(results).sort(order).drop("metric number", "slice number")


@dataclass(frozen=True, eq=False)
class _Inputs:
    """The metrics' inputs, evaluated for every row once; equal expressions share a column."""

    frame: pl.DataFrame
    columns: Sequence[Mapping[str, str]]
    """Per metric: from the name of an input to its column in `frame`."""
    signatures: Sequence[str]
    """Per metric: its inputs as text, whichever metrics are beside it."""
    cluster: str | None
    """The column in `frame` of what samples hang together by."""

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
        signatures: list[str] = []
        nothing = pl.LazyFrame(schema=schema)
        for metric in metrics:
            typed = _typed_inputs(metric, nothing)
            texts = {role: expression.meta.serialize(format="json") for role, expression in typed.items()}
            signatures.append(json.dumps(texts))
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
        return cls(frame, columns, signatures, None if cluster is None else f"column {cluster}")

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
        if role in LABELS or kind == pl.Boolean or kind.is_integer():
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
class _Slicing:
    """The groups of one slice: `keys` has one row per group; `group` numbers each sample's, their number for none."""

    name: str
    keys: pl.DataFrame
    group: Integers

    @classmethod
    def of(cls, frame: pl.DataFrame, columns: Columns, name: str, groups: Sequence[str]) -> "_Slicing":
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


def _summaries(inputs: _Inputs, columns: Columns, slicing: _Slicing, metrics: Sequence[Metric]) -> list[pl.DataFrame]:
    """All metrics of one slice that follow from aggregates and moments, in one aggregation."""
    chosen = [
        (i, metric, metric.estimator)
        for i, metric in enumerate(metrics)
        if slicing.name in metric.slices and not isinstance(metric.estimator, Composite)
    ]
    aggregates = {i: estimator.aggregates(inputs.column(i)) for i, _, estimator in chosen}
    distinct: dict[str, pl.Expr] = {}
    for aggregate in (a for named in aggregates.values() for a in named.values()):
        distinct.setdefault(aggregate.meta.serialize(format="json"), aggregate)
    groups = slicing.keys.height
    grouped = inputs.frame.with_columns(group=slicing.group).group_by("group").agg(**distinct).sort("group")[:groups]
    moments: dict[str, Moments] = {}
    rows = []
    for i, metric, estimator in chosen:
        numbers = {name: grouped[aggregate.meta.serialize(format="json")] for name, aggregate in aggregates[i].items()}
        for column in (inputs.columns[i][role] for role in estimator.summed):
            if column not in moments:
                moments[column] = columns.moments(column, slicing.group, groups + 1).of_first(groups)
        own = {role: moments[inputs.columns[i][role]] for role in estimator.summed}
        try:
            rows.append(slicing.rows(i, metric, estimator.estimate(numbers, own)))
        except MetricError as error:
            raise MetricError(f"Metric {metric.name}, slice {slicing.name}: {error}.") from error
    return rows


def _families(inputs: _Inputs, metrics: Sequence[Metric]) -> list[dict[int, Composite]]:
    """The composite metrics, by number, together with those that differ in their functions alone: they share draws."""
    families: dict[object, dict[int, Composite]] = {}
    for i, metric in enumerate(metrics):
        if isinstance(metric.estimator, Composite):
            key = (metric.estimator.bins, metric.estimator.apart, *inputs.columns[i].items())
            families.setdefault(key, {})[i] = metric.estimator
    return list(families.values())


def _composites(
    inputs: _Inputs, columns: Columns, slicings: Sequence[_Slicing], metrics: Sequence[Metric], seed: int, draws: int
) -> list[pl.DataFrame]:
    """All composite metrics, in all their slices."""
    families = _families(inputs, metrics)
    with ThreadPoolExecutor(MOST_THREADS) as threads:  # NumPy lets go of the lock
        if inputs.cluster is None:
            ranks = rank_inputs(inputs.frame, [inputs.columns[i] for family in families for i in family])
            by_rows = partial(_by_rows, inputs, ranks, slicings, metrics, seed, draws)
            found = threads.map(by_rows, families)
        else:
            cluster = columns.ranks(inputs.cluster)
            drawn = Draws(draws, partial(_random_numbers, seed, "draws"))
            by_clusters = partial(_by_clusters, inputs, cluster, columns, metrics, seed, drawn, families)
            found = threads.map(by_clusters, slicings)
        return [rows for each in found for rows in each]


def _by_rows(
    inputs: _Inputs,
    ranks: pl.DataFrame,
    slicings: Sequence[_Slicing],
    metrics: Sequence[Metric],
    seed: int,
    draws: int,
    family: Mapping[int, Composite],
) -> list[pl.DataFrame]:
    """A family of composite metrics in all their slices: the samples are read once, then counts are."""
    first = next(iter(family))
    try:
        cells = find_cells(inputs.frame, ranks, family[first], inputs.columns[first])
        rows = []
        for slicing in slicings:
            members = [i for i in family if slicing.name in metrics[i].slices]
            if not members or not slicing.keys.height:
                continue
            estimates = np.empty((slicing.keys.height, len(members), 5))
            for number, group in group_cells(slicing.group, slicing.keys.height, cells):
                rng = _random_numbers(seed, inputs.signatures[first], slicing.name, slicing.keys.row(number))
                estimates[number] = estimate_group([family[i] for i in members], cells, group, draws, rng)
            rows += [slicing.rows(i, metrics[i], Estimate(*estimates[:, m].T)) for m, i in enumerate(members)]
    except MetricError as error:
        raise MetricError(f"Metric {metrics[first].name}: {error}.") from error
    return rows


def _by_clusters(
    inputs: _Inputs,
    cluster: Integers,
    columns: Columns,
    metrics: Sequence[Metric],
    seed: int,
    draws: Draws,
    families: Sequence[Mapping[int, Composite]],
    slicing: _Slicing,
) -> list[pl.DataFrame]:
    """All composite metrics in one slice: rows are read once, then sums of clusters are."""
    here = [{i: c for i, c in family.items() if slicing.name in metrics[i].slices} for family in families]
    chosen = [
        Family(metrics[first].name, family, inputs.columns[first])
        for family in here
        if (first := next(iter(family), None)) is not None
    ]
    if not chosen or not slicing.keys.height:
        return []
    dealt = partial(_dealing, seed, slicing)
    estimates = estimate_slice(chosen, columns, slicing.group, slicing.keys.height, cluster, dealt, draws)
    return [slicing.rows(i, metrics[i], Estimate(*numbers.T)) for i, numbers in estimates.items()]


def _dealing(seed: int, slicing: _Slicing, group: int) -> np.random.Generator:
    return _random_numbers(seed, "dealt", slicing.name, slicing.keys.row(group))


def _random_numbers(seed: int, *names: object) -> np.random.Generator:
    """A generator of its own for all that is named, whatever else is measured beside it."""
    digest = hashlib.sha256(json.dumps([seed, *names], default=str).encode()).digest()
    return np.random.default_rng(int.from_bytes(digest))
