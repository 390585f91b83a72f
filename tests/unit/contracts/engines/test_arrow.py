"""Frames conform to a contract exactly, or are refused with the table and the column named."""

from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from enum import IntEnum, StrEnum
from typing import Any

import pendulum
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from polars.testing import assert_frame_equal

from evalake.contracts.contract import Contract
from evalake.contracts.engines.arrow import arrow_schema, conform, polars_schema
from evalake.core.errors import ContractError, SchemaMismatchError
from evalake.suites.registry import all_contracts
from tests.unit.contracts.examples import EXAMPLE, NOON, edge_frame, row
from tests.unit.contracts.strategies import frames

ALL = (EXAMPLE, *all_contracts())


def test_arrow_schema_says_types_nulls_and_descriptions() -> None:
    schema = arrow_schema(EXAMPLE)
    assert schema.names == list(EXAMPLE.row.model_fields)
    assert schema.field("name") == pa.field("name", pa.string(), nullable=False)
    assert schema.field("state") == pa.field("state", pa.string())
    assert schema.field("count") == pa.field("count", pa.int64())
    assert schema.field("share") == pa.field("share", pa.float64())
    assert schema.field("flag") == pa.field("flag", pa.bool_())
    assert schema.field("begun") == pa.field("begun", pa.timestamp("us", tz="UTC"))
    assert schema.field("items") == pa.field("items", pa.list_(pa.field("element", pa.string())))
    assert schema.field("count").metadata == {b"comment": b"0 to 10."}


@pytest.mark.parametrize("contract", ALL, ids=lambda contract: contract.table)
def test_a_polars_frame_becomes_an_arrow_table_of_the_schema_and_back(contract: Contract) -> None:
    frame = conform([], contract)
    assert frame.schema == polars_schema(contract)
    table = frame.to_arrow().cast(arrow_schema(contract))
    assert table.schema.equals(arrow_schema(contract), check_metadata=True)
    assert_frame_equal(conform(pl.DataFrame(table), contract), frame)


@given(frames())
@settings(max_examples=40)
def test_conforming_again_changes_nothing(frame: pl.DataFrame) -> None:
    assert_frame_equal(conform(frame, EXAMPLE), frame)
    assert_frame_equal(conform(frame.to_dicts(), EXAMPLE), frame)
    assert_frame_equal(conform(frame.select(reversed(frame.columns)), EXAMPLE), frame)


class Word(StrEnum):
    """A string with a name."""

    DONE = "done"


class Number(IntEnum):
    """A number with a name."""

    THREE = 3


@pytest.mark.parametrize(
    ("column", "value", "stored"),
    [
        ("share", 1, 1.0),
        ("state", Word.DONE, "done"),
        ("count", Number.THREE, 3),
        ("begun", datetime(2024, 2, 29, 17, 45, tzinfo=timezone(timedelta(hours=5, minutes=45))), NOON),
        ("begun", pendulum.datetime(2024, 2, 29, 17, 45, tz="Asia/Kathmandu"), NOON),  # as Prefect gives times
        ("begun", None, None),
        ("flag", False, False),
        ("share", -0.5, -0.5),
        ("text", "", ""),
        ("text", "a\x00b", "a\x00b"),
        ("items", [], []),
    ],
)
def test_lossless_changes_are_made(column: str, value: Any, stored: Any) -> None:
    assert conform([row(**{column: value})], EXAMPLE)[column].to_list() == [stored]


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("text", 1, "expected text, found a value of type int"),
        ("text", "\ud800", "expected text, found text that is not valid Unicode"),
        ("count", 1.0, "expected a whole number, found a value of type float"),
        ("count", True, "expected a whole number, found a value of type bool"),
        ("count", 2**63, "expected a whole number, found a value that does not fit"),
        ("share", "0.5", "expected a number, found a value of type str"),
        ("share", False, "expected a number, found a value of type bool"),
        ("share", 10**400, "expected a number, found a value that does not fit"),
        ("share", 2**53 + 1, "expected a number, found a value that does not fit"),
        ("flag", 1, "expected true or false, found a value of type int"),
        ("begun", datetime(2024, 1, 1), "expected a time with its zone, found a time without a zone"),
        ("begun", "2024-01-01", "expected a time with its zone, found a value of type str"),
        ("items", "abc", "expected a list, each element text, found a value of type str"),
        ("items", ("a",), "expected a list, each element text, found a value of type tuple"),
        ("items", ["a", 1], "expected a list, each element text, found a value of type int"),
        ("items", ["a", None], "expected a list, each element text, found a list with a null in it"),
    ],
)
def test_a_value_of_another_type_is_refused(column: str, value: Any, message: str) -> None:
    with pytest.raises(SchemaMismatchError) as caught:
        conform([row(), row(**{column: value})], EXAMPLE)
    assert str(caught.value) == f"table example, column {column}: {message}"
    assert isinstance(caught.value, ContractError)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda values: values.pop("text"), "row 1 has no column text"),
        (lambda values: values.update(extra=1), "row 1 has an unknown column 'extra'"),
        (lambda values: values.update({7: 1}), "row 1 has an unknown column 7"),
        (lambda values: values.clear(), "row 1 has no column name"),
    ],
)
def test_a_row_with_other_columns_is_refused(change: Any, message: str) -> None:
    changed = row()
    change(changed)
    with pytest.raises(SchemaMismatchError) as caught:
        conform([row(), changed], EXAMPLE)
    assert str(caught.value) == f"table example: {message}"


def test_a_hostile_column_name_does_not_break_the_line() -> None:
    hostile: Mapping[str, Any] = row(**{"a\nb\u2028" * 1000: 1})
    with pytest.raises(SchemaMismatchError) as caught:
        conform([hostile], EXAMPLE)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("share", pl.Series([1], dtype=pl.Int64)),
        ("share", pl.Series([0.5], dtype=pl.Float32)),
        ("count", pl.Series([3], dtype=pl.UInt8)),
        ("state", pl.Series(["done"], dtype=pl.Categorical)),
        ("state", pl.Series(["done"], dtype=pl.Enum(["done"]))),
        ("text", pl.Series([None], dtype=pl.Null)),
        ("items", pl.Series([[]], dtype=pl.List(pl.Null))),
        ("begun", pl.Series([NOON], dtype=pl.Datetime("ms", "Asia/Kathmandu"))),
    ],
)
def test_a_frame_is_cast_where_nothing_is_lost(column: str, values: pl.Series) -> None:
    frame = conform(conform([row()], EXAMPLE).with_columns(values.alias(column)), EXAMPLE)
    assert frame.schema == polars_schema(EXAMPLE)
    assert frame[column].to_list() == values.to_list()


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("count", pl.Series([1.0]), "found values of type Float64"),
        ("count", pl.Series([True]), "found values of type Boolean"),
        ("count", pl.Series([2**63], dtype=pl.UInt64), "found a value that does not fit"),
        ("share", pl.Series([2**53 + 1]), "found a whole number that a float cannot hold"),
        ("share", pl.Series([False]), "found values of type Boolean"),
        ("text", pl.Series([b"x"]), "found values of type Binary"),
        ("begun", pl.Series([datetime(2024, 1, 1)]), "found values of type Datetime"),
        ("begun", pl.Series([NOON], dtype=pl.Datetime("ns", "UTC")), "found values of type Datetime"),
        ("items", pl.Series([["a", None]]), "found a list with a null in it"),
        ("items", pl.Series([[1]]), r"found values of type List\(Int64\)"),
        ("items", pl.Series(["a"]), "found values of type String"),
    ],
)
def test_a_frame_of_another_type_is_refused(column: str, values: pl.Series, message: str) -> None:
    frame = conform([row()], EXAMPLE).with_columns(values.alias(column))
    with pytest.raises(SchemaMismatchError, match=f"^table example, column {column}: expected .*{message}"):
        conform(frame, EXAMPLE)


def test_a_frame_with_other_columns_is_refused() -> None:
    frame = edge_frame()
    with pytest.raises(SchemaMismatchError, match=r"^table example: the frame has no column text$"):
        conform(frame.drop("text"), EXAMPLE)
    with pytest.raises(SchemaMismatchError, match=r"^table example: the frame has an unknown column 'extra'$"):
        conform(frame.with_columns(extra=1), EXAMPLE)


def test_a_null_in_a_list_is_seen_between_empty_and_missing_lists() -> None:
    values = pl.Series("items", [[], None, ["a"]])
    frame = conform([row(), row(), row()], EXAMPLE).with_columns(values)
    assert conform(frame, EXAMPLE)["items"].to_list() == [[], None, ["a"]]
