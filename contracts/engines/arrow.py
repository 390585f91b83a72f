"""A contract's schema in Arrow and Polars, and frames that have exactly that schema."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import polars as pl
import pyarrow as pa

from evalake.contracts.contract import Added, Column, Contract, Renamed
from evalake.core.errors import SchemaMismatchError


class _Type(NamedTuple):
    arrow: pa.DataType
    polars: pl.DataType
    words: str


_TYPES: Mapping[type, _Type] = {
    str: _Type(pa.string(), pl.String(), "text"),
    int: _Type(pa.int64(), pl.Int64(), "a whole number"),
    float: _Type(pa.float64(), pl.Float64(), "a number"),
    bool: _Type(pa.bool_(), pl.Boolean(), "true or false"),
    datetime: _Type(pa.timestamp("us", tz="UTC"), pl.Datetime("us", "UTC"), "a time with its zone"),
}
NOTHING: Mapping[str, Any] = {}


def arrow_schema(contract: Contract) -> pa.Schema:
    """Build the table's Arrow schema, with descriptions as `comment`, like Delta and Spark."""
    return schema_of(contract.columns)


def schema_of(columns: tuple[Column, ...]) -> pa.Schema:
    """Build the Arrow schema of columns."""
    fields = []
    for column in columns:
        inner = _TYPES[column.element].arrow
        kind = pa.list_(pa.field("element", inner)) if column.base is list else inner
        fields.append(pa.field(column.name, kind, column.nullable, {"comment": column.description}))
    return pa.schema(fields)


def polars_schema(contract: Contract) -> pl.Schema:
    """Build the Polars schema of the table's rows."""
    return pl.Schema({column.name: _polars_type(column) for column in contract.columns})


def conform(
    rows: Sequence[Mapping[str, Any]] | pl.DataFrame, contract: Contract, shared: Mapping[str, Any] = NOTHING
) -> pl.DataFrame:
    """Build a frame with exactly the contract's columns, in their order and types.

    Every row has every column; an unknown value is null. Types change only without loss: whole numbers to floats, zones
    to UTC, categories to text. The audit decides which values are allowed. `shared` are columns with one value for all
    rows.

    Raises SchemaMismatchError, naming table and column, for a missing or unknown column or a value of another type.
    """
    if isinstance(rows, pl.DataFrame):
        _require_names(contract, rows.columns, "the frame")
        return pl.DataFrame([_cast(rows.get_column(column.name), column, contract) for column in contract.columns])
    names = contract.column.keys() - shared.keys()
    for number, row in enumerate(rows):
        if row.keys() != names:
            _require_names(contract, {**row, **shared}, f"row {number}")
    values = ([shared[name]] * len(rows) if name in shared else [row[name] for row in rows] for name in contract.column)
    return pl.DataFrame([_series(of, column, contract) for of, column in zip(values, contract.columns, strict=True)])


def require_exact(frame: pl.DataFrame, contract: Contract) -> None:
    """Raise SchemaMismatchError unless the frame has exactly the contract's columns, in their order and types."""
    _require_names(contract, frame.columns, "the frame")
    require_schema(frame, contract)
    if frame.columns != list(contract.column):
        raise SchemaMismatchError(f"table {contract.table}: the frame's columns are in another order")


def require_schema(frame: pl.DataFrame, contract: Contract) -> None:
    """Raise SchemaMismatchError unless every column of the contract is in the frame with its type."""
    schema = frame.schema
    for name, wanted in polars_schema(contract).items():
        dtype = schema.get(name)
        if dtype is None:
            raise SchemaMismatchError(f"table {contract.table}: the frame has no column {name}")
        if dtype != wanted:
            raise SchemaMismatchError(f"table {contract.table}, column {name}: expected {wanted}, found {dtype}")


def _polars_type(column: Column) -> pl.DataType:
    inner = _TYPES[column.element].polars
    return pl.List(inner) if column.base is list else inner


def _require_names(contract: Contract, names: Sequence[str] | Mapping[str, Any], where: str) -> None:
    missing = [name for name in contract.column if name not in names]
    unknown = [name for name in names if name not in contract.column]
    if missing:
        raise SchemaMismatchError(f"table {contract.table}: {where} has no column {missing[0]}")
    if unknown:
        # A foreign name is escaped and cut
        raise SchemaMismatchError(f"table {contract.table}: {where} has an unknown column {ascii(unknown[0])[:80]}")


def _series(values: list[Any], column: Column, contract: Contract) -> pl.Series:
    # Arrow would accept true as 1, 2.0 as 2, text as a list
    _require_types(values, column.base, column, contract)
    elements = values
    if column.base is list:
        elements = [element for value in values if value is not None for element in value]
        _require_types(elements, column.element, column, contract)
        if None in elements:
            raise _mismatch(contract, column, "a list with a null in it")
    if column.base is datetime and any(value is not None and value.utcoffset() is None for value in values):
        raise _mismatch(contract, column, "a time without a zone")
    try:
        if column.element is float and any(isinstance(value, int) and float(value) != value for value in elements):
            raise ValueError("a whole number that a float cannot hold")
        return pl.Series(column.name, values, _polars_type(column), strict=True)
    except UnicodeEncodeError as error:
        raise _mismatch(contract, column, "text that is not valid Unicode") from error
    except (TypeError, ValueError, OverflowError) as error:
        raise _mismatch(contract, column, "a value that does not fit") from error


def _require_types(values: list[Any], expected: type, column: Column, contract: Contract) -> None:
    for kind in set(map(type, values)) - {expected, type(None)}:
        # To Python, a boolean is an int
        fits = kind is not bool and issubclass(kind, (int, float) if expected is float else expected)
        if not fits:
            raise _mismatch(contract, column, f"a value of type {kind.__name__}")


def _cast(series: pl.Series, column: Column, contract: Contract) -> pl.Series:
    wanted = _polars_type(column)
    if not _lossless(series.dtype, wanted):
        raise _mismatch(contract, column, f"values of type {series.dtype}")
    try:
        cast = series.cast(wanted, strict=True)
    except pl.exceptions.PolarsError as error:
        raise _mismatch(contract, column, "a value that does not fit") from error
    if series.dtype.is_integer() and not series.eq_missing(cast.cast(series.dtype, strict=False)).all():
        raise _mismatch(contract, column, "a whole number that a float cannot hold")
    if column.base is list and cast.drop_nulls().list.eval(pl.element().is_null()).list.any().any():
        raise _mismatch(contract, column, "a list with a null in it")
    return cast


def _lossless(actual: pl.DataType, wanted: pl.DataType) -> bool:
    if actual in (wanted, pl.Null()):
        return True
    if isinstance(wanted, pl.List):
        return isinstance(actual, pl.List) and _lossless(_inner(actual), _inner(wanted))
    if isinstance(wanted, pl.Datetime):
        return isinstance(actual, pl.Datetime) and actual.time_zone is not None and actual.time_unit != "ns"
    if isinstance(wanted, pl.String):
        return isinstance(actual, pl.Categorical | pl.Enum)
    return (isinstance(wanted, pl.Int64 | pl.Float64) and actual.is_integer()) or (
        isinstance(wanted, pl.Float64) and actual.is_float()
    )


def _inner(data_type: pl.List) -> pl.DataType:
    inner = data_type.inner
    return inner if isinstance(inner, pl.DataType) else inner()


def _mismatch(contract: Contract, column: Column, actual: str) -> SchemaMismatchError:
    expected = _TYPES[column.element].words
    if column.base is list:
        expected = f"a list, each element {expected}"
    return SchemaMismatchError(f"table {contract.table}, column {column.name}: expected {expected}, found {actual}")


def upgrade_rows(rows: pl.LazyFrame, contract: Contract, version: int) -> pl.LazyFrame:
    """Convert rows of an older schema version to the contract's columns, by its changes.

    Raises SchemaMismatchError where the result has other columns or types.
    """
    wanted = polars_schema(contract)
    for change in contract.changes[version - 1 :]:
        if isinstance(change, Added):
            rows = rows.with_columns(pl.lit(None, wanted.get(name, pl.Null())).alias(name) for name in change.columns)
        elif isinstance(change, Renamed):
            rows = rows.rename(dict(change.columns))
        else:
            rows = change.rows(rows)
    columns = rows.collect_schema()
    if off := sorted(name for name in columns.keys() | wanted.keys() if columns.get(name) != wanted.get(name)):
        raise SchemaMismatchError(
            f"the changes of the table {contract.table} from schema version {version} do not lead to version "
            f"{contract.schema_version}: they differ in {', '.join(off)}"
        )
    return rows.select(list(wanted))
