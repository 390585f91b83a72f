"""Columns of samples as arrays, numbers of their rows by what they hold, and sums by such numbers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import DTypeLike, NDArray
from polars import selectors

from evalake.core.errors import MetricError
from evalake.metrics.intervals import Array, Integers

if TYPE_CHECKING:
    from evalake.metrics.compute import Metric

STRATUM = "draw_stratum"
"""The column of the stratum that a sample was drawn from; null, or no such column, where nothing was drawn."""

INDEX: DTypeLike = np.int32
"""The type of numbers of units: half of what NumPy would take."""

CONTENT = "content hash"
"""The column of a hash of the other columns."""


class Columns:
    """The columns of a frame."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self.frame = frame
        self._ranks: dict[str, Integers] = {}  # as few bytes each as hold them

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self.frame.height

    def is_condition(self, column: str) -> bool:
        """Tell whether the column holds conditions."""
        return self._schema[column] == pl.Boolean

    def is_whole(self, column: str) -> bool:
        """Tell whether the column holds whole numbers."""
        return self._schema[column].is_integer()

    @cached_property
    def _schema(self) -> pl.Schema:
        return self.frame.schema  # which a frame makes again each time

    def values(self, column: str) -> Array:
        """Return the column, [rows], 0 for null; a copy, so that no more than a few are in memory."""
        return self.frame[column].cast(pl.Float64).fill_null(0.0).to_numpy()

    def is_known(self, column: str) -> NDArray[np.bool_]:
        """Tell which rows have a value."""
        return self.frame[column].is_not_null().to_numpy()

    def ranks(self, column: str | None) -> Integers:
        """Rank each row's value among the column's, from 1, 0 for null; all 0 without a column."""
        if column is None:
            return np.zeros(self.rows, dtype=np.int64)
        if column not in self._ranks:
            self._ranks[column] = small(ranks(self.frame[column]))
        return self._ranks[column].astype(np.int64)


def added_up(group: Integers, values: Array, groups: int) -> Array:
    """Add values up by group, [groups]."""
    return np.asarray(np.bincount(group, values, groups), dtype=np.float64)


def small(numbers: Integers) -> Integers:
    """Convert numbers from 0 to the type that takes the fewest bytes; no arithmetic is done with them."""
    return numbers.astype(np.min_scalar_type(int(numbers.max(initial=0))))


def ranks(values: pl.Series) -> Integers:
    """Rank each among the distinct values, from 1, 0 for null. Only the distinct values are sorted."""
    distinct = values.unique().drop_nulls().sort().alias("value").to_frame().with_row_index("rank", offset=1)
    if distinct.height < 2:
        return values.is_not_null().cast(pl.Int64).to_numpy()
    placed = values.alias("value").to_frame().join(distinct, on="value", how="left", maintain_order="left")
    return placed["rank"].fill_null(0).cast(pl.Int64).to_numpy()


def numbered(keys: Integers, below: int) -> tuple[Integers, Integers]:
    """Assign each key its number among the distinct keys, which are listed, too. Keys are 0 to `below`."""
    if below > max(8 * len(keys), 1_000_000):
        distinct, number = np.unique(keys, return_inverse=True)
        return number, distinct
    occurs = np.zeros(below, dtype=np.bool_)
    occurs[keys] = True
    return (np.cumsum(occurs) - 1)[keys], np.flatnonzero(occurs)


def begins(*keys: Integers) -> NDArray[np.bool_]:
    """Tell which rows, standing in order of the keys, are the first with theirs."""
    first = np.ones(len(keys[0]), dtype=np.bool_)
    first[1:] = reduce(np.logical_or, [key[1:] != key[:-1] for key in keys])
    return first


def ordered(keys: Integers) -> Integers:
    """List row numbers in order of their keys, 0 or more, those of one key in the order they are in."""
    if keys.max(initial=0) <= np.iinfo(np.uint16).max:
        return np.argsort(keys.astype(np.uint16), kind="stable")  # by digits, which is faster
    return np.argsort(keys, kind="stable")


def share_within(added: Array, stratum: Integers, group: Integers, groups: int) -> Array:
    """Compute the share of the variance between units that lies within strata, [groups], at most 1.

    Two unseen units in every stratum, one at either extreme of the group, keep few units that agree from showing that
    a stratum does not vary (add two, Agresti and Coull 1998). So strata of next to no units lessen nothing.
    """
    low, high = np.full(groups, np.inf), np.full(groups, -np.inf)
    np.minimum.at(low, group, added)
    np.maximum.at(high, group, added)
    strata = int(stratum.max(initial=0)) + 1
    group = group.astype(np.int64)
    number, keys = numbered(group * strata + stratum, groups * strata)
    of_stratum = keys // strata

    def squares(of: Integers, cells: int, ends: tuple[Array, Array]) -> Array:
        """Estimate how much the units of each cell add to the variance."""
        n, sums, squared = (added_up(of, each, cells) for each in (np.ones_like(added), added, added**2))
        least, most = ends
        with np.errstate(all="ignore"):
            about = squared + least**2 + most**2 - (sums + least + most) ** 2 / (n + 2)
            return np.where(n > 0, n / (n + 1) * about, 0.0)

    within = added_up(of_stratum, squares(number, len(keys), (low[of_stratum], high[of_stratum])), groups)
    whole = squares(group, groups, (low, high))
    with np.errstate(all="ignore"):
        return np.where(whole > 0, np.minimum(within / whole, 1.0), 1.0)


def strata_of(frame: pl.DataFrame, cluster: str) -> Integers | None:
    """Assign each row the number of the stratum, or the strata, that its cluster was drawn from; None without any."""
    if not frame[STRATUM].count():
        return None
    of_cluster = frame.group_by(cluster).agg(pl.col(STRATUM).cast(pl.String).unique().sort().str.join("\n"))
    joined = frame.select(cluster).join(of_cluster, on=cluster, how="left", maintain_order="left")
    return ranks(joined[STRATUM])


def settled(frame: pl.DataFrame, groups: Sequence[str], cluster: str | None) -> tuple[Integers, Integers, Integers]:
    """Put rows in order of group, then cluster, then content.

    Returns:
        Their order, and in this order the number of each row's group and cluster. Without a cluster each row is one.
    """
    group = np.zeros(frame.height, dtype=np.int64)
    for name in groups:
        rank = ranks(frame[name])
        group *= int(rank.max(initial=0)) + 1
        group += rank
    group = small(group)
    keys = [frame[CONTENT].to_numpy()] if CONTENT in frame.columns else []
    if cluster is None:
        order = small(np.lexsort([*keys, group]))
        return order, group[order], np.arange(frame.height)
    is_one = not np.ptp(group) if len(group) else True
    keys.append(frame[cluster].to_numpy() if is_one and frame[cluster].dtype.is_integer() else ranks(frame[cluster]))
    order = small(np.lexsort([*keys, group]))
    of_cluster = keys[-1][order]
    if is_one:
        of_cluster = np.cumsum(begins(of_cluster), dtype=INDEX)
    return order, group[order], of_cluster


# Inputs: what metrics read of samples, in an order that does not depend on how they came.


HASHED_AT_ONCE = 100_000
"""Rows whose columns are in memory together while their content is hashed."""


@dataclass(frozen=True, eq=False)
class Inputs:
    """The metrics' inputs, which are evaluated for every row; equal expressions share a column.

    Attributes:
        parts: The rows as they came, read again whenever something is evaluated; windows end with their part.
        order: Their order of group, then cluster, then content, so that no sum depends on the order they came in.
        expressions: What to evaluate, by column.
        columns: Per metric: from the name of an input to its column.
        group: [rows] in this order, the number of each row's group.
        cluster: [rows] the number of each row's cluster, likewise.
        strata: [rows] that of the stratum that its cluster was drawn from; None where nothing was.
    """

    parts: Sequence[pl.LazyFrame]
    order: Integers
    expressions: Mapping[str, pl.Expr]
    columns: Sequence[Mapping[str, str]]
    group: Integers
    cluster: Integers
    strata: Integers | None
    _owner: Mapping[str, str]

    @cached_property
    def frame(self) -> pl.DataFrame:
        """All columns."""
        return self.evaluated(self.expressions)

    def evaluated(self, columns: Iterable[str]) -> pl.DataFrame:
        """Evaluate columns, in order. Raises MetricError where one of a metric is not finite."""
        widened = selectors.signed_integer().cast(pl.Int64)  # no sum or product overflows
        named = {name: self.expressions[name] for name in columns}
        wide = (part.with_columns(widened).with_columns(**named) for part in self.parts)  # a literal has as many rows
        frame = pl.concat([part.select(*named).collect() for part in wide])[self.order]
        _refuse_non_finite(frame, {name: owner for name, owner in self._owner.items() if name in frame.schema})
        return frame

    @classmethod
    def read(
        cls, parts: Sequence[pl.LazyFrame], metrics: "Sequence[Metric]", groups: Sequence[str], cluster: str | None
    ) -> "Inputs":
        """Read the rows, whose parts have the same columns, and find what the metrics evaluate of them.

        Raises:
            MetricError: An input is of another type than its estimator takes, or a cluster is unknown.
        """
        names = [metric.name for metric in metrics]
        if repeated := {name for name in names if names.count(name) > 1}:
            raise MetricError(f"Two metrics are called {min(repeated)}; give each a name of its own.")
        lazy = pl.concat(parts)
        schema = lazy.collect_schema()
        wanted = [*groups, *(s for m in metrics for s in m.slices if s != "all")]
        if missing := [column for column in (*wanted, *([cluster] if cluster else [])) if column not in schema]:
            raise MetricError(f"The samples have no column {missing[0]}, which the metrics are grouped or sliced by.")

        of_column = ((name, pl.col(name), schema[name]) for name in wanted)
        selected = {f"column {name}": each.cast(kind) if kind.is_integer() else each for name, each, kind in of_column}
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
        of_order = dict.fromkeys([*groups, *([cluster] if cluster else []), *({STRATUM} & {*schema})])
        others = selectors.exclude(selectors.nested() | selectors.object() | selectors.by_name(*of_order))
        content = selectors.expand_selector(schema, others)

        def keyed(part: pl.DataFrame) -> pl.DataFrame:
            hashed = [part.select(content).hash_rows().alias(CONTENT)] if content else []
            return part.select(*of_order, *hashed)

        starts = range(0, max(1, lazy.select(pl.len()).collect().item()), HASHED_AT_ONCE)
        given = pl.concat([keyed(lazy.slice(start, HASHED_AT_ONCE).collect()) for start in starts])
        if cluster is not None and (unknown := given[cluster].null_count()):
            raise MetricError(f"{unknown} samples have no {cluster}, the column of their cluster.")
        order, group, of_cluster = settled(given, groups, cluster)
        strata = None if cluster is None or STRATUM not in schema else strata_of(given, cluster)
        strata = None if strata is None else strata[order]
        return cls(parts, order, selected, columns, group, of_cluster, strata, owner)


def _typed_inputs(metric: "Metric", nothing: pl.LazyFrame) -> dict[str, pl.Expr]:
    """Cast the metric's inputs to conditions, whole or floating-point numbers; labels stay as they are."""
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
    """Raise MetricError for a NaN or infinite value: it is an error upstream, and could give a plausible number."""
    schema = frame.schema  # made again at each access
    floats = [column for column in owner if schema[column].is_float()]
    if not floats or frame.is_empty():
        return
    counts = frame.select((~pl.col(floats).is_finite()).sum()).row(0, named=True)
    for column, count in counts.items():
        if count:
            raise MetricError(f"Metric {owner[column]}: {count} samples give it NaN or an infinite value.")
