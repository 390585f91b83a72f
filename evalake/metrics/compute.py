"""The engine: every metric of every (model, judge) and slice, from sums over units."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from evalake.core.errors import MetricError
from evalake.core.hashing import content_hash
from evalake.metrics.columns import INDEX, STRATUM, Columns, Inputs, begins, numbered, ordered, small
from evalake.metrics.estimator import Estimate, Estimator, Totals, estimated
from evalake.metrics.intervals import Integers
from evalake.metrics.units import Pool, Share, Units, View

# What a metric is: a name, an estimator, the slices it is reported for; and the declared identity of its values.


ENGINE_VERSION = 8
"""Changes whenever the engine can give another value, error, interval or count for the same rows and declarations."""


@dataclass(frozen=True, eq=False)
class Metric:
    """One metric of a suite.

    Attributes:
        slices: "all" and names of columns; each value of a column is one slice.
        version: Changes whenever the metric's meaning does: what its expressions and functions make of the same rows.
        parameters: Further inputs of the values, like weights from the configuration; as JSON knows them.
    """

    name: str
    estimator: Estimator
    tier: int | None = None
    slices: tuple[str, ...] = ("all",)
    description: str = ""
    version: int = 1
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def identity(self) -> list[Any]:
        """What tells this metric's values from others."""
        return [self.name, self.version, self.tier, list(self.slices), dict(self.parameters)]


def definition_hash(metrics: Sequence[Metric], *more: Any) -> str:
    """Compute the SHA-256, in hexadecimal, of the versions of the engine and of the metrics, and of what is added.

    It follows from what is declared alone, never from how code happens to be written, and so is the same for every
    Python, machine and library.
    """
    return content_hash([ENGINE_VERSION, [metric.identity for metric in metrics], *more])


# Slices: the groups of rows with one value of a column, and their units, many slices at once.


@dataclass(frozen=True, eq=False)
class Slicing:
    """The groups of one slice: `keys` has a row per group; `group` numbers each sample's (none: how many groups)."""

    name: str
    keys: pl.DataFrame
    group: Integers

    @classmethod
    def of(cls, columns: Columns, name: str, groups: Sequence[str]) -> "Slicing":
        """Assign numbers to the groups of a slice in the order of their keys."""
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
        first[code[::-1]] = np.arange(columns.rows)[::-1]
        value = pl.lit("") if sliced is None else pl.col(sliced).cast(pl.String)
        own = [pl.col(f"column {group}").alias(group) for group in groups]
        keys = columns.frame[first[:count]].select(*own, slice_value=value)
        return cls(name, keys, small(np.minimum(code, count)))


def units_of(slicings: Sequence[Slicing], group: Integers, cluster: Integers) -> Units:
    """Assign numbers to the units of the groups of several slices, one slice after the other.

    Args:
        slicings: The slices.
        group: [rows] the group of each row, for any slice, in ascending order.
        cluster: [rows] the cluster of each row, in ascending order within each group.
    """
    rows, of_group, before = [], [], 0
    for slicing in slicings:
        count = slicing.keys.height
        own = small(ordered(slicing.group)[: np.count_nonzero(slicing.group < count)])
        rows.append(own)
        of_group.append(slicing.group[own].astype(INDEX) + before)
        before += count
    if len(slicings) == 1:
        return Units.in_order(rows[0], of_group[0], before, cluster[rows[0]])
    every = np.concatenate(rows)
    units = Units.in_order(every, np.concatenate(of_group), before, cluster[every])
    return replace(units, shares=tuple(_shares(units, rows, np.cumsum(begins(group, cluster)) - 1)))


def _shares(units: Units, rows: Sequence[Integers], whole: Integers) -> Iterator[Share]:
    """Yield the pool of each slice's sums by unit: slices of the same rows that split no unit have the same one."""
    first = 0
    pools: dict[bytes, Pool] = {}
    for own in rows:
        of_row = units.of_row[first : first + len(own)]
        first += len(own)
        before = int(of_row[0])
        first_rows = np.flatnonzero(begins(of_row))
        inside = np.zeros(len(whole), dtype=np.bool_)
        inside[own] = True
        number, distinct = numbered(whole[inside], int(whole[-1]) + 1)
        if len(distinct) < len(first_rows):
            yield Share(Pool(own, of_row - before, len(first_rows)), None)
            continue
        pool = pools.setdefault(
            inside.tobytes(), Pool(None if inside.all() else np.flatnonzero(inside), number, len(distinct))
        )
        yield Share(pool, np.searchsorted(distinct, whole[own[first_rows]]))


# Values alone, without uncertainty: formulas applied to the sums of each group.


def values(frame: pl.DataFrame, metrics: Sequence[Metric], groups: Sequence[str]) -> pl.DataFrame:
    """Compute functions of sums, like composites of rates and means, over all rows of each group.

    Returns:
        The columns `groups` and one for each metric, null where it is undefined, in order of group.

    Raises:
        MetricError: Names the metric that cannot be computed, and why.
    """
    inputs = Inputs.read([frame.lazy()], metrics, groups, None)
    if not len(inputs.order):
        return frame.select(groups).clear().with_columns(pl.lit(0.0).alias(metric.name) for metric in metrics)
    columns = Columns(inputs.frame)
    slicing = Slicing.of(columns, "all", groups)
    row = np.arange(inputs.frame.height)
    units = Units.in_order(row, slicing.group, slicing.keys.height, np.zeros_like(row))
    view = View(columns, units, {})
    computed = {
        metric.name: pl.Series(metric.estimator.drawn(Totals(replace(view, column_of=columns_of)))).fill_nan(None)
        for metric, columns_of in zip(metrics, inputs.columns, strict=True)
    }
    return slicing.keys.drop("slice_value").with_columns(**computed)


RELIABLE_FROM = 30
"""Units from here on make a metric `reliable`; a composite's least reliable part counts."""

MOST_THREADS = 2
"""Parts measured at once."""

PART_ROWS = 100_000
"""Rows of a part, from which on another begins: groups are measured in parts, whose sums stay in the caches."""

ROWS_AT_ONCE = 200_000
"""Rows, of whole groups, that are in memory as the metrics read them, where a run has more."""

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

Limits = Callable[[Estimator, View, Estimate], Estimate]
"""From an estimate to one with other ends of its interval."""


def measure(
    frame: pl.LazyFrame | pl.DataFrame,
    metrics: Sequence[Metric],
    *,
    groups: Sequence[str] = ("model", "judge"),
    cluster: str | None = None,
    limits: Limits | None = None,
) -> pl.DataFrame:
    """Compute every metric in every group and slice.

    Args:
        frame: One row per sample; at least the columns that the metrics, `groups`, their slices and `cluster` name.
        metrics: What to measure.
        groups: Columns that tell what is measured apart; null (no judge) is a group like any other.
        cluster: Column whose value makes samples one unit; without it each row is one.
        limits: Moves the ends of each interval, like to the limits that decide.

    Returns:
        The columns `groups`, then `MEASURES`, ordered by group, metric (as declared), slice (as declared) and slice
        value. Slice "all" has slice_value ""; rows whose slice column is null are in no group of that slice. A metric
        without denominator is null with n = 0. The result depends on the rows, not on their order.

    Raises:
        MetricError: Names the metric that cannot be computed, and why.
    """
    results = []
    for rows in _at_once(frame, metrics, groups, cluster):
        inputs = Inputs.read([rows], metrics, groups, cluster)
        results.append(pl.DataFrame(schema=_schema(inputs, groups)))
        if len(inputs.order):
            parts = _Part.all_of(inputs)
            if not all(part.is_large for part in parts):
                _ = inputs.frame  # once, before threads share it
            with ThreadPoolExecutor(MOST_THREADS) as threads:  # NumPy releases Python's lock
                of_parts = threads.map(partial(_measure_part, inputs, metrics, groups, limits), parts)
                results += [rows for of_part in of_parts for rows in of_part]
    order = [*groups, "metric number", "slice number", "slice_value"]
    return pl.concat(results).sort(order).drop("metric number", "slice number")


def _at_once(
    frame: pl.LazyFrame | pl.DataFrame, metrics: Sequence[Metric], groups: Sequence[str], cluster: str | None
) -> Iterator[pl.LazyFrame]:
    """Yield the rows of as many whole groups as are measured at once: of a scan, only the columns that are read."""
    lazy = frame.lazy()
    schema = lazy.collect_schema()
    if isinstance(frame, pl.LazyFrame):
        inputs = [each for metric in metrics for each in metric.estimator.inputs().values()]
        slices = [name for metric in metrics for name in metric.slices]
        read = {*groups, cluster, STRATUM, *slices, *(name for each in inputs for name in each.meta.root_names())}
        lazy = lazy.select(name for name in schema if name in read)
    few = isinstance(frame, pl.DataFrame) and frame.height <= ROWS_AT_ONCE
    # The stratum of a cluster follows from its rows in all groups
    if few or not groups or STRATUM in schema or not set(groups) <= set(schema):
        yield lazy
        return
    sizes = lazy.group_by(groups).len().sort(groups).collect(engine="streaming")
    if sizes.height < 2 or sizes["len"].sum() <= ROWS_AT_ONCE:
        yield lazy
        return
    number = (sizes["len"].cum_sum() - 1) // ROWS_AT_ONCE
    for (_,), keys in sizes.drop("len").with_columns(number.alias("part")).group_by("part", maintain_order=True):
        of_groups = lazy.join(keys.drop("part").lazy(), on=list(groups), how="semi", nulls_equal=True)
        yield of_groups.collect(engine="streaming").lazy()


def metric_row(model: Any, judge: Any, metric: str, *, n: int, units: int, **numbers: float | None) -> dict[str, Any]:
    """Build a row in the columns METRIC_ROWS of a metric over all samples that `measure` does not compute."""
    of = {"model": model, "judge": judge, "slice": "all", "slice_value": "", "metric": metric}
    return {**dict.fromkeys(METRIC_ROWS), **of, "n": n, "units": units, "reliable": units >= RELIABLE_FROM, **numbers}


def _schema(inputs: Inputs, groups: Sequence[str]) -> dict[str, pl.DataType]:
    """List the columns of the metric rows of groups with their types, and the numbers that rows are ordered by."""
    schema = inputs.parts[0].collect_schema()
    keys = {group: schema[group] for group in groups}
    return keys | dict(MEASURES) | {"metric number": pl.Int64(), "slice number": pl.Int64()}


@dataclass(frozen=True, eq=False)
class _Part:
    """Rows of whole groups, with the numbers of their groups and clusters, from the first to before the last."""

    first: int
    last: int
    group: Integers
    cluster: Integers
    strata: Integers | None

    @property
    def is_large(self) -> bool:
        """Whether inputs and sums by unit take so much that each metric makes its own: few metrics share them."""
        return self.last - self.first >= 2 * PART_ROWS

    @classmethod
    def all_of(cls, inputs: Inputs) -> "list[_Part]":
        """Cut the samples into parts."""
        cuts, group = [0], inputs.group
        for begin in np.flatnonzero(group[1:] != group[:-1]) + 1:
            if begin - cuts[-1] >= PART_ROWS:
                cuts.append(int(begin))
        strata = inputs.strata
        return [
            cls(a, b, group[a:b], inputs.cluster[a:b], None if strata is None else strata[a:b])
            for a, b in pairwise([*cuts, len(group)])
        ]


def _measure_part(
    inputs: Inputs, metrics: Sequence[Metric], groups: Sequence[str], limits: Limits | None, part: _Part
) -> list[pl.DataFrame]:
    """Compute all metrics of whole groups: those of the same slices for all slices at once."""
    results = []
    keys = [name for name in inputs.expressions if name.startswith("column ")] or [*inputs.expressions][:1]
    columns = Columns((inputs.evaluated(keys) if part.is_large else inputs.frame)[part.first : part.last])
    names = dict.fromkeys(name for metric in metrics for name in metric.slices)
    slicings = {name: Slicing.of(columns, name, groups) for name in names}
    if part.is_large:
        columns = Columns(pl.DataFrame())
    for slices in dict.fromkeys(metric.slices for metric in metrics):
        own = {number: metric for number, metric in enumerate(metrics) if metric.slices == slices}
        for together in [(name,) for name in slices] if part.is_large else [slices]:
            known = [slicings[name] for name in together if not slicings[name].keys.is_empty()]
            if known:
                units = replace(units_of(known, part.group, part.cluster), strata=part.strata)
                view, estimates = View(columns, units, {}), list[Estimate]()
                for number, metric in own.items():
                    own_view = replace(view, column_of=inputs.columns[number])
                    if part.is_large:
                        read = inputs.evaluated({*inputs.columns[number].values()})[part.first : part.last]
                        own_view = View(Columns(read), units, inputs.columns[number])
                    of_metric = _estimate(metric, own_view, known)
                    of_metric = of_metric if limits is None else limits(metric.estimator, own_view, of_metric)
                    estimates.append(replace(of_metric, make_influence=None))
                    if part.is_large:
                        own_view.forget()
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
