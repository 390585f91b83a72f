"""Rows of an older version of a table's schema, brought forward to the newest by the changes of its contract."""

import polars as pl

from contracts.changes import Added, Renamed
from contracts.compile.arrow import polars_schema
from contracts.contract import Contract
from core.errors import SchemaMismatchError


def bring_forward(rows: pl.LazyFrame, contract: Contract, version: int) -> pl.LazyFrame:
    """Convert rows that were written by the schema version `version` to the contract's columns.

    Raises SchemaMismatchError where the result does not have the contract's columns and types.
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
            f"rows of schema version {version} of the table {contract.table} do not become those of version "
            f"{contract.schema_version}: they differ in {', '.join(off)}"
        )
    return rows.select(list(wanted))
