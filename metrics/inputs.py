"""What metrics read of samples: their inputs as columns, of rows in an order that does not depend on how they came."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from polars import selectors

from core.errors import MetricError
from metrics.columns import numbered, ranks
from metrics.definition import Metric
from metrics.intervals import Integers


@dataclass(frozen=True, eq=False)
class Inputs:
    """The metrics' inputs, evaluated for every row once; equal expressions share a column.

    Attributes:
        frame: The rows as they came.
        order: The numbers of the rows in order of group, then cluster, then content, in which they are measured, so
            that no sum depends on the order they came in.
        columns: Per metric: from the name of an input to its column in `frame`.
        group: [rows] the number of each row's group, in that order.
        cluster: [rows] the number of each row's cluster, likewise.
    """

    frame: pl.DataFrame
    order: Integers
    columns: Sequence[Mapping[str, str]]
    group: Integers
    cluster: Integers

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
        given = lazy.collect()
        if cluster is not None and (unknown := given[cluster].null_count()):
            raise MetricError(f"{unknown} samples have no {cluster}, the column of their cluster.")
        order, group, of_cluster = _settled(given, groups, cluster)
        frame = given.select(**selected)
        _refuse_non_finite(frame, owner)
        return cls(frame, order, columns, group, of_cluster)

    def rows(self, first: int = 0, last: int | None = None) -> pl.DataFrame:
        """Return the rows that are measured from the first to before the last, in their order."""
        order = self.order[first:last]
        in_place = len(order) and (np.diff(order) == 1).all()
        return self.frame[int(order[0]) : int(order[-1]) + 1] if in_place else self.frame[order]


def _typed_inputs(metric: Metric, nothing: pl.LazyFrame) -> dict[str, pl.Expr]:
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
    schema = frame.schema  # made anew each time that it is asked for
    floats = [column for column in owner if schema[column].is_float()]
    if not floats or frame.is_empty():
        return
    counts = frame.select((~pl.col(floats).is_finite()).sum()).row(0, named=True)
    for column, count in counts.items():
        if count:
            raise MetricError(f"Metric {owner[column]}: {count} samples give it NaN or an infinite value.")


def _settled(frame: pl.DataFrame, groups: Sequence[str], cluster: str | None) -> tuple[Integers, Integers, Integers]:
    """Put rows in order of group, then cluster, then content, whichever columns are read.

    Returns:
        Their order, and in this order the number of each row's group and cluster. Without a cluster each row is one.
    """
    group = np.zeros(frame.height, dtype=np.int64)
    for name in groups:
        rank = ranks(frame[name])
        group = group * (int(rank.max(initial=0)) + 1) + rank
    of_cluster = np.zeros(frame.height, dtype=np.int64) if cluster is None else ranks(frame[cluster])
    both = group * (int(of_cluster.max(initial=0)) + 1) + of_cluster
    number = numbered(both, int(both.max(initial=0)) + 1)[0].astype(np.uint64)
    known = np.uint64(64 - int(number.max(initial=0)).bit_length())  # bits that are left for the content
    rest = frame.select(
        ~(selectors.nested() | selectors.object() | selectors.by_name(*groups, *([cluster] if cluster else [])))
    )
    content = rest.hash_rows().to_numpy() if rest.width else number
    order = np.argsort(number << known | content >> (np.uint64(64) - known)) if known < 64 else np.argsort(content)
    group, of_cluster = group[order], of_cluster[order]
    if cluster is None:
        of_cluster = np.arange(frame.height)
    return order, group, of_cluster
