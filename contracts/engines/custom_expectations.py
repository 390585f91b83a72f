"""The two kinds of expectation that Great Expectations lacks. Importing this module imports Great Expectations."""

from typing import Any

from great_expectations.execution_engine.pandas_execution_engine import PandasExecutionEngine
from great_expectations.expectations.expectation import ColumnMapExpectation, ColumnPairMapExpectation
from great_expectations.expectations.metrics.map_metric_provider.column_condition_partial import (
    column_condition_partial,
)
from great_expectations.expectations.metrics.map_metric_provider.column_map_metric_provider import (
    ColumnMapMetricProvider,
)
from great_expectations.expectations.metrics.map_metric_provider.column_pair_condition_partial import (
    column_pair_condition_partial,
)
from great_expectations.expectations.metrics.map_metric_provider.column_pair_map_metric_provider import (
    ColumnPairMapMetricProvider,
)


class ListIsEmpty(ColumnMapMetricProvider):
    """Computes which lists are empty."""

    condition_metric_name = "column_values.empty_list"

    @column_condition_partial(engine=PandasExecutionEngine)
    def _pandas(cls, column: Any, **_: Any) -> Any:  # noqa: N805 (the decorator makes it a class method)
        return column.list.len() == 0


class ExpectColumnValuesToBeEmptyLists(ColumnMapExpectation):
    """Expect every list of the column to be empty."""

    map_metric = "column_values.empty_list"


class ShareInGroup(ColumnPairMapMetricProvider):
    """Computes which rows hold one of the values in a group where too many rows do."""

    condition_metric_name = "column_pair_values.share_in_group"
    condition_value_keys = ("values", "maximum")

    @column_pair_condition_partial(engine=PandasExecutionEngine)  # type: ignore[untyped-decorator]
    def _pandas(cls, column_A: Any, column_B: Any, values: Any, maximum: float, **_: Any) -> Any:  # noqa: N803, N805
        hit = column_A.isin(values)
        return ~hit | (hit.groupby(column_B, dropna=False).transform("mean") <= maximum)


class ExpectColumnPairShareInGroup(ColumnPairMapExpectation):
    """Expect that in no group (column B) more than a `maximum` share of rows holds one of the `values` (column A)."""

    values: list[Any]
    maximum: float
    ignore_row_if: str

    map_metric = "column_pair_values.share_in_group"
    success_keys = ("values", "maximum", "ignore_row_if", "mostly")
