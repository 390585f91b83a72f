"""The tables of a lake as tables of the engine.

Files on this machine are read by the engine itself: a query's columns, conditions and limit then reach them, through
views, too. Polars reads everything else; a limit does not reach it, and what a query needs of a table is in memory.
"""

from contextlib import suppress

import duckdb

from contracts.compile.arrow import polars_schema
from contracts.contract import Contract
from storage.lake import Opened

_PATTERN = frozenset("*?[{")  # in the path of a file, the engine reads these as several files


def files_of(opened: Opened | None) -> list[str]:
    """List the files that the engine can read itself; none where it cannot."""
    uri = "" if opened is None else opened.table.table_uri
    if opened is None or not opened.is_current or not uri.startswith("file://"):
        return []
    files = opened.table.file_uris()
    return [] if any(map(_PATTERN.intersection, files)) else files


def lay_out(connection: duckdb.DuckDBPyConnection, contract: Contract, opened: Opened | None, files: list[str]) -> None:
    """Register the table with the engine under its name."""
    if files:
        # Where no file has a column that was added since, Polars fills it; where one is broken, Polars says which.
        with suppress(duckdb.Error):
            connection.execute(_view(contract, files))
            return
    rows = polars_schema(contract).to_frame(eager=False) if opened is None else opened.rows()
    connection.register(contract.table, rows)


def _view(contract: Contract, files: list[str]) -> str:
    # Files from before a column was added have none of it. The folders of a partition have its values in their names.
    kinds = ", ".join(f"{column}: varchar" for column in contract.partition_by)
    partitions = f"true, hive_types = {{{kinds}}}" if kinds else "false"
    paths = ", ".join("'" + file.replace("'", "''") + "'" for file in files)
    return (
        f"create temp view {contract.table} as select {', '.join(contract.column)} "
        f"from read_parquet([{paths}], union_by_name = true, hive_partitioning = {partitions})"
    )
