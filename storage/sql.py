"""SQL over the tables: DuckDB reads pinned Delta scans, and can do nothing else.

The connection is closed to files, network, extensions and settings before a query is run, and its configuration is
locked: what a query may do is not decided by reading its text. Every query gets a connection of its own, with a
memory limit and a time limit.
"""

import threading
from collections.abc import Mapping, Sequence

import duckdb
import polars as pl
import pyarrow as pa

from contracts.contract import Contract
from contracts.errors import QueryError
from contracts.tables import CALLS
from storage.lake import Lake

MEMORY_LIMIT = "2GB"
TIME_LIMIT_SECONDS = 60.0

# The ledger may hold a key twice after a race; this view holds the reply of each key.
REPLIES_VIEW = """
create view replies as
select * from calls qualify row_number() over (partition by prompt_hash, replicate order by ledger_version) = 1
"""


def query(
    lake: Lake,
    contracts: Sequence[Contract],
    sql: str,
    *,
    versions: Mapping[str, int] | None = None,
    time_limit_seconds: float = TIME_LIMIT_SECONDS,
    memory_limit: str = MEMORY_LIMIT,
) -> pl.DataFrame:
    """Run one query over the tables of `contracts`, each at its newest version or the one in `versions`.

    Raises QueryError with the engine's reason where the query is wrong, refused, or runs past its limits.
    """
    pinned = versions or {}
    if unknown := sorted(pinned.keys() - {contract.table for contract in contracts}):
        raise QueryError(f"there is no table {unknown[0]} to read at a version; `evalake tables` lists them")
    frames = {contract.table: lake.frame(contract, pinned.get(contract.table)) for contract in contracts}
    with _connect(memory_limit) as connection:
        for name, frame in frames.items():
            connection.register(name, frame)
        connection.execute(REPLIES_VIEW if CALLS.table in frames else "select 1")
        connection.execute("set lock_configuration = true")
        return _run(connection, sql, time_limit_seconds)


def _connect(memory_limit: str) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(
        ":memory:",
        config={
            "memory_limit": memory_limit,
            "threads": 2,
            "temp_directory": "",
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "allow_community_extensions": False,
            "python_enable_replacements": False,
        },
    )
    connection.execute("set enable_external_access = false")
    return connection


def _run(connection: duckdb.DuckDBPyConnection, sql: str, time_limit_seconds: float) -> pl.DataFrame:
    timer = threading.Timer(time_limit_seconds, connection.interrupt)
    timer.start()
    try:
        relation = connection.sql(sql)  # None where a statement gives no rows
        return pl.DataFrame() if relation is None else _frame(relation.to_arrow_table())
    except duckdb.InterruptException as error:
        raise QueryError(f"the query was stopped at its time limit of {time_limit_seconds:g} s") from error
    except (duckdb.Error, pl.exceptions.PolarsError) as error:
        raise QueryError(f"the query failed: {_first_line(error)}") from error
    finally:
        timer.cancel()


def _frame(table: pa.Table) -> pl.DataFrame:
    frame = pl.from_arrow(table)
    return frame if isinstance(frame, pl.DataFrame) else frame.to_frame()


def _first_line(error: Exception) -> str:
    return " ".join(str(error).split("\n\n")[0].split())
