"""Inputs: what metrics read of samples, as columns of rows in an order that does not depend on how they came."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import polars as pl
from polars import selectors

from evalake.core.errors import MetricError
from evalake.metrics.columns import CONTENT, STRATUM, settled, strata_of
from evalake.metrics.intervals import Integers

if TYPE_CHECKING:
    from evalake.metrics.compute import Metric

HASHED_AT_ONCE = 100_000
"""Rows whose columns are in memory together while their content is hashed."""


@dataclass(frozen=True, eq=False)
class Inputs:
    """The metrics' inputs, which are evaluated for every row; equal expressions share a column.

    Attributes:
        rows: The rows as they came, read again whenever something is evaluated.
        order: Their order of group, then cluster, then content, so that no sum depends on the order they came in.
        expressions: What to evaluate, by column.
        columns: Per metric: from the name of an input to its column.
        group: [rows] in this order, the number of each row's group.
        cluster: [rows] the number of each row's cluster, likewise.
        strata: [rows] that of the stratum that its cluster was drawn from; None where nothing was.
    """

    rows: pl.LazyFrame
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
        wide = self.rows.with_columns(selectors.signed_integer().cast(pl.Int64))  # no sum or product overflows
        named = {name: self.expressions[name] for name in columns}
        frame = wide.with_columns(**named).select(*named).collect()[self.order]  # so that a literal has as many rows
        _refuse_non_finite(frame, {name: owner for name, owner in self._owner.items() if name in frame.schema})
        return frame

    @classmethod
    def read(
        cls, lazy: pl.LazyFrame, metrics: "Sequence[Metric]", groups: Sequence[str], cluster: str | None
    ) -> "Inputs":
        """Read the rows, and find what the metrics evaluate of them.

        Raises:
            MetricError: An input is of another type than its estimator takes, or a cluster is unknown.
        """
        names = [metric.name for metric in metrics]
        if repeated := {name for name in names if names.count(name) > 1}:
            raise MetricError(f"Two metrics are called {min(repeated)}; give each a name of its own.")
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
        return cls(lazy, order, selected, columns, group, of_cluster, strata, owner)


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
