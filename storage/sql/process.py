"""Runs one query in its process: reads the request on standard input, writes rows in Arrow to standard output."""

import json
import pickle
import re
import resource
import signal
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Any, BinaryIO

import duckdb
import polars as pl
import pyarrow as pa

from evalake.contracts.contract import Contract
from evalake.contracts.tables import CALLS
from evalake.core.errors import EvalakeError, LakeError, QueryError
from evalake.storage.lake import Opened
from evalake.storage.ledger import distinct_until
from evalake.storage.sql.catalogue import files_of, register_table
from evalake.storage.sql.query import REFUSED, Request
from evalake.storage.sql.start import MEGABYTE, Limits
from evalake.storage.sql.views import REPLIES, View

# DuckDB also proposes unrelated tables and its own
_HINT = re.compile(r'!? Did you mean "([^"]*)"\?')
_OWN_TABLE = re.compile("pg_|duckdb_|sqlite_|pragma_|information_schema")

_ABSENT_TABLE = re.compile(r'Table with name "?(\w+)"? does not exist')

_OF_ALL = "from calls group by prompt_hash, replicate, endpoint"  # in the view of replies

_WORD = re.compile(r"\w+")
_READS_CATALOGUE = re.compile(
    r"\b(?:show|desc|describe|summarize)\b|information_schema|duckdb_|sqlite_|pg_|pragma_", re.IGNORECASE
)

BATCH_ROWS = 2048  # DuckDB's unit; a batch of long texts stays small
THREADS = 2

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

# All other kinds return no rows or change something. PIVOT becomes MULTI.
_STATEMENTS = frozenset({duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN, duckdb.StatementType.MULTI})

# DuckDB takes COPY in a WITH, an EXPLAIN or a PIVOT, too, and runs SQL that stands in a text. `allowed_paths` lets it
# cut the files of the lake to nothing.
_WRITES = re.compile(r'(?<!")\bcopy\b|\bquery"?\s*\(|json_execute_serialized_sql', re.IGNORECASE)
_MAY_WRITE = re.compile("copy|query|json_execute", re.IGNORECASE)
_ODD_SPACE = re.compile(r"[^\S\x00-\x7f]|[\u180e\u200b-\u200f\u2060\ufeff]")  # a blank to DuckDB's parser alone


def answer() -> int:
    """Answer the request on standard input; returns the exit code."""
    request: Request = pickle.load(sys.stdin.buffer)
    try:
        answer_request(request, sys.stdout.buffer, confine=_confine)
    except EvalakeError as error:
        print(json.dumps({"kind": type(error).__name__, "message": str(error)}), file=sys.stderr)  # noqa: T201
        return REFUSED
    return 0


def answer_request(request: Request, out: BinaryIO, *, confine: Callable[[Limits], None]) -> None:
    """Answer from the tables that the query names; where DuckDB lacks one, from all tables.

    Opening a table takes a dozen requests to an object store. The second try serves names made by expressions, and
    DuckDB's hints for misspelt names.

    Args:
        request: The query. DuckDB is closed and locked before it sees it.
        out: Gets the rows, in Arrow.
        confine: Limits the process, once the tables are open and before the query runs; called at each try.
    """
    try:
        with suppress(duckdb.CatalogException):
            return _answer_from(request, _named(request), out, confine)
        return _answer_from(request, _all_names(request), out, confine)
    except (duckdb.Error, pl.exceptions.PolarsError, pa.ArrowException, OSError, MemoryError) as error:
        raise QueryError(_reason(error, request.limits)) from error


def _answer_from(request: Request, names: Collection[str], out: BinaryIO, confine: Callable[[Limits], None]) -> None:
    """Answer from these tables and views; raises CatalogException where the query needs another."""
    opened, unreadable = _open_tables(request, names)
    files = {name: files_of(table) for name, table in opened.items()}
    with _connect(request.limits, [path for paths in files.values() for path in paths]) as connection:
        for contract in request.contracts:
            if contract.table in opened:
                register_table(connection, contract, opened[contract.table], files[contract.table])
        for view in _views(request, names, opened, unreadable):
            connection.execute(f"create temp view {view.name} as {_sql_of(view, opened)}")
        connection.execute("set lock_configuration = true")
        confine(request.limits)
        try:
            _write(connection, request, out)
        except duckdb.CatalogException as error:
            absent = _ABSENT_TABLE.search(str(error))
            if absent and absent[1].lower() in unreadable:
                raise unreadable[absent[1].lower()] from None
            raise


def _all_names(request: Request) -> Collection[str]:
    return [each.table for each in request.contracts] + [each.name for each in request.views]


def _named(request: Request) -> Collection[str]:
    """List the tables and views that the query names, or all where it reads the catalogue."""
    if _READS_CATALOGUE.search(request.sql):
        return _all_names(request)
    words = set(_WORD.findall(request.sql.lower()))
    for view in reversed(request.views):  # a view comes after those that it reads
        if view.name in words:
            words.update(_WORD.findall(view.sql.lower()))
    return words


def _open_tables(request: Request, names: Collection[str]) -> tuple[dict[str, Opened | None], dict[str, EvalakeError]]:
    """Open the readable tables, and note the errors of the others, which fail only a query that reads them."""
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
                raise  # the user asked for this version
            unreadable[contract.table] = error
    return opened, unreadable


def _views(
    request: Request,
    names: Collection[str],
    opened: Mapping[str, Opened | None],
    unreadable: dict[str, EvalakeError],
) -> Iterator[View]:
    """Yield the views over open tables; note the errors of the others in `unreadable`."""
    for view in request.views:
        if view.name not in names:
            continue
        if missing := [name for name in view.needs if name in unreadable]:
            unreadable[view.name] = unreadable[missing[0]]
        elif opened.keys() >= set(view.needs):
            yield view


def _sql_of(view: View, opened: Mapping[str, Opened | None]) -> str:
    """Return the SQL of a view; keys are compared with later rows alone where the ledger has none twice before."""
    table = opened.get(CALLS.table)
    if view.name != REPLIES.name or table is None or (version := distinct_until(table.table)) is None:
        return view.sql
    key = "prompt_hash, replicate, endpoint"
    later = f"semi join (select {key} from calls where ledger_version > {version}) using ({key})"
    return view.sql.replace(_OF_ALL, f"from calls {later} {_OF_ALL.removeprefix('from calls ')}")


def _open(request: Request, contract: Contract) -> Opened | None:
    lake, versions = request.lake, request.versions
    for name in (contract.table, *contract.former_tables):
        table = lake.find(name) if name in versions else None
        if table is not None and not 0 <= versions[name] <= table.version():
            raise LakeError(f"the table {name} has no version {versions[name]}: its newest is {table.version()}")
    return lake.pinned_table(contract, versions)


def _connect(limits: Limits, files: list[str]) -> duckdb.DuckDBPyConnection:
    """Open a connection that can read only these files."""
    memory = f"{limits.memory // MEGABYTE}MiB"
    connection = duckdb.connect(
        config={**_CLOSED, "memory_limit": memory, "threads": THREADS, "arrow_large_buffer_size": True}
    )
    connection.execute("load icu")  # built in; time zones
    connection.execute("set allowed_paths = ?", [files])
    for setting in (
        "TimeZone = 'UTC'",
        "enable_progress_bar = false",
        "parquet_metadata_cache = true",
        "enable_external_access = false",
    ):
        connection.execute(f"set {setting}")
    return connection


def _confine(limits: Limits) -> None:
    """Set limits of memory, files and time that the operating system enforces."""
    if resource.getrlimit(resource.RLIMIT_FSIZE) == (0, 0):
        return  # already set, at the first try
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    if (used := _bytes_in_use()) is not None:
        most = used + limits.memory + limits.spare
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    left, _ = signal.getitimer(signal.ITIMER_REAL)
    signal.setitimer(signal.ITIMER_REAL, min(limits.seconds, left))


def _bytes_in_use() -> int | None:
    """Read the bytes that RLIMIT_DATA counts; None on a system that ignores that limit."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmData:"):
                return int(line.split()[1]) * 1024
    return None


def _write(connection: duckdb.DuckDBPyConnection, request: Request, out: BinaryIO) -> None:
    limits = request.limits
    statements = connection.extract_statements(request.sql)
    if len(statements) != 1:
        raise QueryError(f"give one query: these are {len(statements)} statements")
    if (kind := _kind(statements[0])) not in _STATEMENTS:
        raise QueryError(f"only queries that read are allowed, not {kind.name if kind else 'this statement'}")
    if _MAY_WRITE.search(request.sql) and (_ODD_SPACE.search(request.sql) or _WRITES.search(_code(request.sql))):
        raise QueryError("only queries that read are allowed: no COPY, query() or json_execute_serialized_sql()")
    relation = connection.sql(statements[0])
    if relation is None:
        raise QueryError("the query returns no rows")
    rows = size = 0
    with relation.to_arrow_reader(BATCH_ROWS) as batches, pa.ipc.new_stream(out, batches.schema) as stream:
        for batch in batches:
            rows, size = rows + batch.num_rows, size + batch.nbytes
            if rows > limits.rows or size > limits.result:
                raise QueryError(
                    f"the result is too large (more than {limits.rows:,} rows or {limits.result // MEGABYTE:,} MB): "
                    "aggregate, choose fewer columns, or add a limit"
                )
            stream.write_batch(batch)


def _code(sql: str) -> str:
    """Leave texts and comments out of a query."""
    content, tokens = sql.encode(), duckdb.tokenize(sql)
    ends = [*(start for start, _ in tokens[1:]), len(content)]
    left_out = (duckdb.token_type.string_const, duckdb.token_type.comment)
    kept = (content[start:end] for (start, kind), end in zip(tokens, ends, strict=True) if kind not in left_out)
    return b" ".join(kept).decode()


def _kind(statement: duckdb.Statement) -> duckdb.StatementType | None:
    try:
        return statement.type
    except ValueError:  # unknown to DuckDB's Python package
        return None


def _reason(error: Exception, limits: Limits) -> str:
    message = " ".join(str(error).split("\n\n")[0].split())
    if isinstance(error, MemoryError) or message.startswith("Out of Memory Error"):
        return f"the query was stopped: it needs more memory than its limit of {limits.memory // MEGABYTE:,} MB"
    hint, absent = _HINT.search(message), _ABSENT_TABLE.search(message)
    if hint and (_OWN_TABLE.match(hint[1]) or (absent and not get_close_matches(absent[1].lower(), [hint[1]]))):
        message = _HINT.sub(": `evalake tables` lists the tables", message)
    return f"the query failed: {message or type(error).__name__}"
