"""The process of one query: reads a request on standard input, and writes its rows in Arrow to standard output."""

import json
import pickle
import re
import resource
import signal
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa

from evalake.contracts.contract import Contract
from evalake.core.errors import EvalakeError, LakeError, QueryError
from evalake.storage.lake import Opened
from evalake.storage.sql.catalogue import files_of, lay_out
from evalake.storage.sql.query import REFUSED, Request
from evalake.storage.sql.start import MEGABYTE, Limits
from evalake.storage.sql.views import View

# The engine proposes a table also where it finds no name that is alike, and then one of its own, too.
_HINT = re.compile(r'!? Did you mean "([^"]*)"\?')
_OWN_TABLE = re.compile("pg_|duckdb_|sqlite_|pragma_|information_schema")

# How the engine says that there is no such table.
_ABSENT_TABLE = re.compile(r'Table with name "?(\w+)"? does not exist')

_WORD = re.compile(r"\w+")
_ASKS_WHAT_THERE_IS = re.compile(
    r"\b(?:show|desc|describe|summarize)\b|information_schema|duckdb_|sqlite_|pg_|pragma_", re.IGNORECASE
)

BATCH_ROWS = 2048  # the engine's own unit: a batch of long texts stays small
THREADS = 2

# The engine loads nothing by itself.
_CLOSED: dict[str, Any] = {
    "temp_directory": "",
    "extension_directory": "",
    "secret_directory": "",
    "allow_persistent_secrets": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "python_enable_replacements": False,
}

# A statement of any other kind gives no rows, or is one that changes something. MULTI is what PIVOT becomes.
_STATEMENTS = frozenset({duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN, duckdb.StatementType.MULTI})


def answer() -> int:
    """Answer the request on standard input; returns the exit code."""
    request: Request = pickle.load(sys.stdin.buffer)
    try:
        _answer(request)
    except EvalakeError as error:
        print(json.dumps({"kind": type(error).__name__, "message": str(error)}), file=sys.stderr)  # noqa: T201
        return REFUSED
    return 0


def _answer(request: Request) -> None:
    """Answer from the tables and views that the query names; where the engine lacks one, from all that there are.

    To open a table takes a dozen requests to an object store. An expression may make a name, though; and where a name
    is wrong, the engine tells one of all that is like it.
    """
    try:
        with suppress(duckdb.CatalogException):
            return _answer_from(request, _named(request))
        return _answer_from(request, _all_names(request))
    except (duckdb.Error, pl.exceptions.PolarsError, pa.ArrowException, OSError, MemoryError) as error:
        # What fails while rows are fetched comes through Arrow, as an OSError with the engine's words.
        raise QueryError(_reason(error, request.limits)) from error


def _answer_from(request: Request, names: Collection[str]) -> None:
    """Answer from the tables and views of these names; raises CatalogException where the query needs another."""
    opened, unreadable = _open_tables(request, names)
    files = {name: files_of(table) for name, table in opened.items()}
    with _connect(request.limits, [path for paths in files.values() for path in paths]) as connection:
        for contract in request.contracts:
            if contract.table in opened:
                lay_out(connection, contract, opened[contract.table], files[contract.table])
        for view in _views(request, names, opened, unreadable):
            connection.execute(f"create temp view {view.name} as {view.sql}")
        connection.execute("set lock_configuration = true")
        _confine(request.limits)
        try:
            _write(connection, request.sql, request.limits)
        except duckdb.CatalogException as error:
            absent = _ABSENT_TABLE.search(str(error))
            if absent and absent[1].lower() in unreadable:
                raise unreadable[absent[1].lower()] from None
            raise


def _all_names(request: Request) -> Collection[str]:
    return [each.table for each in request.contracts] + [each.name for each in request.views]


def _named(request: Request) -> Collection[str]:
    """List the tables and views that a query needs by its words, or all where it asks what there is."""
    if _ASKS_WHAT_THERE_IS.search(request.sql):
        return _all_names(request)
    words = set(_WORD.findall(request.sql.lower()))
    for view in reversed(request.views):  # each stands after those that it reads
        if view.name in words:
            words.update(_WORD.findall(view.sql.lower()))
    return words


def _open_tables(request: Request, names: Collection[str]) -> tuple[dict[str, Opened | None], dict[str, EvalakeError]]:
    """Open the tables that can be read, and note why others cannot: only a query that reads one of those is to fail."""
    opened: dict[str, Opened | None] = {}
    unreadable: dict[str, EvalakeError] = {}
    for contract in request.contracts:
        is_pinned = any(name in request.versions for name in (contract.table, *contract.former_tables))
        if not (is_pinned or contract.table in names):
            continue
        try:
            opened[contract.table] = _open(request, contract)
        except EvalakeError as error:
            if is_pinned:
                raise  # somebody asked for this version
            unreadable[contract.table] = error
    return opened, unreadable


def _views(
    request: Request,
    names: Collection[str],
    opened: Mapping[str, Opened | None],
    unreadable: dict[str, EvalakeError],
) -> Iterator[View]:
    """Yield the views over tables that are open; note in `unreadable` why another cannot be read."""
    for view in request.views:
        if view.name not in names:
            continue
        if missing := [name for name in view.needs if name in unreadable]:
            unreadable[view.name] = unreadable[missing[0]]
        elif opened.keys() >= set(view.needs):
            yield view


def _open(request: Request, contract: Contract) -> Opened | None:
    lake, versions = request.lake, request.versions
    for name in (contract.table, *contract.former_tables):
        table = lake.find(name) if name in versions else None
        if table is not None and not 0 <= versions[name] <= table.version():
            raise LakeError(f"the table {name} has no version {versions[name]}: its newest is {table.version()}")
    return lake.pinned_table(contract, versions)


def _connect(limits: Limits, files: list[str]) -> duckdb.DuckDBPyConnection:
    """Open a connection that can read these files, and no others."""
    memory = f"{limits.memory // MEGABYTE}MiB"
    connection = duckdb.connect(
        config={**_CLOSED, "memory_limit": memory, "threads": THREADS, "arrow_large_buffer_size": True}
    )
    connection.execute("load icu")  # part of the engine; knows time zones
    connection.execute("set allowed_paths = ?", [files])
    for setting in (
        "TimeZone = 'UTC'",
        "enable_progress_bar = false",
        "parquet_metadata_cache = true",  # a query, and each view on its way, looks at every file's
        "enable_external_access = false",
    ):
        connection.execute(f"set {setting}")
    return connection


def _confine(limits: Limits) -> None:
    """Set limits past which the operating system ends this process, however deep in a function it is."""
    if resource.getrlimit(resource.RLIMIT_FSIZE) == (0, 0):
        return  # they are set already: all that the query does counts
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    if (used := _bytes_in_use()) is not None:
        most = used + limits.memory + limits.spare
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    left, _ = signal.getitimer(signal.ITIMER_REAL)  # of the time for all
    signal.setitimer(signal.ITIMER_REAL, min(limits.seconds, left))


def _bytes_in_use() -> int | None:
    """Read the bytes that RLIMIT_DATA counts, so far; None on a system without them (which ignores that limit, too)."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmData:"):
                return int(line.split()[1]) * 1024
    return None


def _write(connection: duckdb.DuckDBPyConnection, sql: str, limits: Limits) -> None:
    statements = connection.extract_statements(sql)
    if len(statements) != 1:
        raise QueryError(f"one query at a time: this is {len(statements)} statements")
    if (kind := _kind(statements[0])) not in _STATEMENTS:
        raise QueryError(f"only queries that read are run, not {kind.name if kind else 'this'}")
    relation = connection.sql(statements[0])
    if relation is None:
        raise QueryError("the query gives no rows")
    rows = size = 0
    with relation.to_arrow_reader(BATCH_ROWS) as batches, pa.ipc.new_stream(sys.stdout.buffer, batches.schema) as out:
        for batch in batches:
            rows, size = rows + batch.num_rows, size + batch.nbytes
            if rows > limits.rows or size > limits.result:
                raise QueryError(
                    f"the result is too large (more than {limits.rows:,} rows or {limits.result // MEGABYTE:,} MB): "
                    "aggregate, choose fewer columns, or add a limit"
                )
            out.write_batch(batch)


def _kind(statement: duckdb.Statement) -> duckdb.StatementType | None:
    try:
        return statement.type
    except ValueError:  # a kind that the engine knows and its Python side does not
        return None


def _reason(error: Exception, limits: Limits) -> str:
    message = " ".join(str(error).split("\n\n")[0].split())
    if isinstance(error, MemoryError) or message.startswith("Out of Memory Error"):
        return f"the query was stopped: it wanted more memory than the {limits.memory // MEGABYTE:,} MB it may use"
    hint, absent = _HINT.search(message), _ABSENT_TABLE.search(message)
    if hint and (_OWN_TABLE.match(hint[1]) or (absent and not get_close_matches(absent[1].lower(), [hint[1]]))):
        message = _HINT.sub(": `evalake tables` lists what there is", message)
    return f"the query failed: {message or type(error).__name__}"
