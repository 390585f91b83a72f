"""The catalogue of tables and views from their contracts, and their registration with DuckDB."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import duckdb
import polars as pl

from evalake.contracts.contract import Contract
from evalake.contracts.engines.arrow import polars_schema
from evalake.contracts.engines.sql import describe, literal
from evalake.core.errors import UsageError, did_you_mean
from evalake.storage.lake import Opened
from evalake.storage.sql.views import View, views

COLUMN_FIELDS: dict[str, pl.DataType] = {
    "column": pl.String(),
    "type": pl.String(),
    "nullable": pl.Boolean(),
    "key": pl.Boolean(),
    "description": pl.String(),
    "rules": pl.List(pl.String()),
}


@dataclass(frozen=True)
class ColumnEntry:
    """One column. `type` is SQL's; columns of views are nullable, without key and rules."""

    column: str
    type: str
    nullable: bool
    key: bool
    description: str
    rules: tuple[str, ...]


@dataclass(frozen=True)
class Entry:
    """One table or view, with its table rules."""

    name: str
    kind: str  # table or view
    description: str
    key: tuple[str, ...]
    rules: tuple[str, ...]
    columns: tuple[ColumnEntry, ...]


def catalogue(contracts: Sequence[Contract], name: str | None = None) -> tuple[Entry, ...]:
    """Describe all tables, then all views; or the one named. Raises UsageError for an unknown name."""
    types = _types(contracts)
    entries = [
        *(_table_entry(each, types) for each in contracts),
        *(_view_entry(each, types) for each in views(contracts)),
    ]
    if not (wanted := tuple(entry for entry in entries if name in (None, entry.name))):
        names = [entry.name for entry in entries]
        near = did_you_mean(str(name), names) or f": choose one of {', '.join(names)}"
        raise UsageError(f"no table or view is called {name}{near}")
    return wanted


def column_frame(entries: Sequence[Entry]) -> pl.DataFrame:
    """Build a frame with one row for each column of the entries."""
    rows = [{"table": entry.name, **vars(column)} for entry in entries for column in entry.columns]
    return pl.DataFrame(rows, schema={"table": pl.String(), **COLUMN_FIELDS}, orient="row")


Types = dict[tuple[str, str], str]


def _types(contracts: Sequence[Contract]) -> Types:
    """Find the SQL type of each column, by table or view, from empty tables."""
    with duckdb.connect() as connection:
        for contract in contracts:
            connection.register(contract.table, pl.DataFrame(schema=polars_schema(contract)))
        for view in views(contracts):
            connection.execute(f"create temp view {view.name} as {view.sql}")
        sql = "select table_name, column_name, data_type from duckdb_columns() where not internal"
        return {(table, column): kind for table, column, kind in connection.execute(sql).fetchall()}


def _table_entry(contract: Contract, types: Types) -> Entry:
    columns = tuple(
        ColumnEntry(
            column=column.name,
            type=types[contract.table, column.name],
            nullable=column.nullable,
            key=column.name in contract.key,
            description=column.description,
            rules=tuple(describe(rule) for rule in contract.rules if rule.column == column.name),
        )
        for column in contract.columns
    )
    rules = tuple(describe(rule) for rule in contract.table_rules)
    return Entry(contract.table, "table", contract.description, contract.key, rules, columns)


def _view_entry(view: View, types: Types) -> Entry:
    columns = tuple(
        ColumnEntry(name, types[view.name, name], nullable=True, key=False, description=description, rules=())
        for name, description in view.columns.items()
    )
    return Entry(view.name, "view", view.description, (), (), columns)


_GLOB = frozenset("*?[{")  # characters that DuckDB expands in a file's path


def files_of(opened: Opened | None) -> list[str]:
    """List the files of a table that DuckDB reads directly; empty where Polars has to read them."""
    uri = "" if opened is None else opened.table.table_uri
    if opened is None or not opened.is_current or not uri.startswith("file://"):
        return []
    files = opened.table.file_uris()
    return [] if any(map(_GLOB.intersection, files)) else files


def register_table(
    connection: duckdb.DuckDBPyConnection, contract: Contract, opened: Opened | None, files: list[str]
) -> None:
    """Register the table with DuckDB under its name."""
    if files:
        # Polars fills a column that no file has, and names a broken file
        with suppress(duckdb.Error):
            connection.execute(_view(contract, files))
            return
    rows = polars_schema(contract).to_frame(eager=False) if opened is None else opened.rows()
    connection.register(contract.table, rows)


def _view(contract: Contract, files: list[str]) -> str:
    kinds = ", ".join(f"{column}: varchar" for column in contract.partition_by)
    partitions = f"true, hive_types = {{{kinds}}}" if kinds else "false"
    paths = ", ".join(map(literal, files))
    return (
        f"create temp view {contract.table} as select {', '.join(contract.column)} "
        f"from read_parquet([{paths}], union_by_name = true, hive_partitioning = {partitions})"
    )
