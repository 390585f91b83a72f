"""Runs SQL over the tables in a confined process, in which DuckDB reads pinned versions, and formats the result.

Evalake does not judge a query by its text. DuckDB is closed to files, network, extensions and settings, and its
configuration is locked before it sees the query. The operating system limits the process's memory and time, which
DuckDB cannot do within a single function call; forbids it to write files; and gives it only the environment that
reading the lake takes. Where the kernel has Landlock, even a process that a fault in DuckDB has taken over reaches no
other file and no other process.
"""

import json
import pickle
import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from tempfile import TemporaryFile, gettempdir
from typing import IO, Any, BinaryIO

import polars as pl
import pyarrow as pa

from evalake.contracts.contract import Contract
from evalake.core import errors
from evalake.core.errors import EvalakeError, QueryError
from evalake.core.hashing import plain
from evalake.core.redaction import FORMULA, is_formula
from evalake.storage.lake import Lake
from evalake.storage.sql.start import LIMITS, MEGABYTE, Deadline, Limits, QueryProcess, start
from evalake.storage.sql.views import View, views

OVERHEAD = 64 * MEGABYTE  # for a result's encoding and its last batch

REFUSED = 3  # exit code; the last line of standard error has the reason as JSON


@dataclass(frozen=True)
class Request:
    """The request that the process receives."""

    lake: Lake
    contracts: tuple[Contract, ...]
    versions: Mapping[str, int]
    views: tuple[View, ...]
    sql: str
    limits: Limits


class Result:
    """The answer to a query, in a private file that is read in parts."""

    def __init__(self, encoded: BinaryIO, deadline: "Deadline") -> None:
        """Read the columns; raises QueryError for a type that frames do not have."""
        self._deadline = deadline
        self._batches = pa.ipc.open_stream(encoded)
        if any(map(_is_unsupported, self._batches.schema.types)):
            raise QueryError(
                "the result has a column of a type that evalake cannot show: cast it, an interval with epoch(…)"
            )
        self._names = _distinct(self._batches.schema.names)
        self._none = self._frame([])

    def frames(self) -> Iterator[pl.DataFrame]:
        """Yield the rows in parts, once; an empty result is one empty part. Raises QueryError after the deadline."""
        batch = None
        for batch in self._in_time():
            yield self._frame([batch])
        if batch is None:
            yield self._none

    def frame(self) -> pl.DataFrame:
        """Read all rows at once. Raises as `frames` does."""
        return self._frame(list(self._in_time()))

    def _in_time(self) -> Iterator[pa.RecordBatch]:
        for batch in self._batches:
            self._deadline.require_time()
            yield batch

    def _frame(self, batches: list[pa.RecordBatch]) -> pl.DataFrame:
        return pl.DataFrame(pa.Table.from_batches(batches, self._batches.schema).rename_columns(self._names))


def _is_unsupported(kind: pa.DataType) -> bool:
    """Tell whether Polars would panic at a type."""
    if pa.types.is_interval(kind) or pa.types.is_union(kind):
        return True
    return any(_is_unsupported(kind.field(number).type) for number in range(kind.num_fields))


def query(
    lake: Lake,
    contracts: Sequence[Contract],
    sql: str,
    *,
    versions: Mapping[str, int] | None = None,
    limits: Limits = LIMITS,
) -> pl.DataFrame:
    """Run one query over the views and the tables, each at its version in `versions` or the newest.

    Raises QueryError with the reason where the query is wrong, refused or exceeds its limits, LakeError where a table
    cannot be read.
    """
    with open_query(lake, contracts, sql, versions=versions, limits=limits) as result:
        return result.frame()


@contextmanager
def open_query(
    lake: Lake,
    contracts: Sequence[Contract],
    sql: str,
    *,
    versions: Mapping[str, int] | None = None,
    limits: Limits = LIMITS,
    process: QueryProcess | None = None,
) -> Iterator[Result]:
    """Run a query as `query` does, and yield its complete result, to be read in parts.

    `process` is one that the caller has started for this lake and these limits.
    """
    request = to_request(lake, contracts, sql, versions=versions, limits=limits)
    with TemporaryFile() as result, nullcontext(process) if process else start(lake.address, limits) as started:
        _run(request, result, started)
        result.seek(0)
        yield Result(result, started.deadline)


def to_request(
    lake: Lake,
    contracts: Sequence[Contract],
    sql: str,
    *,
    versions: Mapping[str, int] | None = None,
    limits: Limits = LIMITS,
) -> Request:
    """Build the request of a query; raises QueryError for an unknown table in `versions` and for invalid Unicode."""
    pinned = dict(versions or {})
    names = {name for contract in contracts for name in (contract.table, *contract.former_tables)}
    if unknown := sorted(pinned.keys() - names):
        raise QueryError(f"no table is called {unknown[0]}: `evalake tables` lists the tables")
    if not sql.isascii() and sql != sql.encode("utf-8", "replace").decode("utf-8"):
        raise QueryError("the query is not valid Unicode: give it as UTF-8")
    return Request(lake, tuple(contracts), pinned, views(contracts), sql, limits)


def _run(request: Request, result: BinaryIO, started: QueryProcess) -> None:
    """Send the request to the process, and copy its answer to a file in parts."""
    limits, deadline = request.limits, started.deadline
    with started.process as process, ThreadPoolExecutor(1) as reader:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        complaint = reader.submit(_tail, process.stderr)
        try:
            with (
                suppress(BrokenPipeError),
                process.stdin as standard_input,
            ):  # the exit code of an ended process says why
                standard_input.write(pickle.dumps(request))
            _copy(process.stdout, result, limits)
        except BaseException:
            process.kill()
            raise
    if (code := process.wait()) < 0:
        deadline.require_time()
    if code != 0:
        raise _failure(code, complaint.result(), limits)


def _copy(answer: BinaryIO | IO[bytes], result: BinaryIO, limits: Limits) -> None:
    room = limits.result + OVERHEAD
    try:
        while part := answer.read(MEGABYTE):
            room -= len(part)
            if room < 0:
                raise QueryError(f"the result is too large (more than {limits.result // MEGABYTE:,} MB)")
            result.write(part)
    except OSError as error:
        raise QueryError(f"the result cannot be kept in {gettempdir()}: {error.strerror}") from error


def _tail(stream: IO[bytes]) -> bytes:
    """Read a stream to its end; return its last megabyte."""
    end = b""
    while part := stream.read(MEGABYTE):
        end = (end + part)[-MEGABYTE:]
    return end


def _failure(code: int, complaint: bytes, limits: Limits) -> EvalakeError:
    if code == REFUSED:
        reason = json.loads(complaint.splitlines()[-1])
        kind: type[EvalakeError] = getattr(errors, reason["kind"])
        return kind(reason["message"])
    if code == -signal.SIGALRM:
        return QueryError(f"the query was stopped at its time limit of {limits.seconds:g} s")
    if code > 0:
        reason = complaint.decode("utf-8", "replace").strip().splitlines()[-1:]
        return QueryError(f"the query's process failed: {' '.join(reason)[:300] or f'exit code {code}'}")
    return QueryError(
        f"the query was stopped: it needs more memory than its limit of {limits.memory // MEGABYTE:,} MB, "
        f"or crashed DuckDB (signal {-code})"
    )


def _distinct(names: Sequence[str]) -> list[str]:
    """Add a number to repeated names, which joined tables may have."""
    tables: dict[str, None] = {}
    for name in names:
        numbered = (f"{name}_{number}" for number in count(1))
        tables[next(each for each in chain([name], numbered) if each not in tables)] = None
    return list(tables)


def as_csv(frame: pl.DataFrame, *, spreadsheet_safe: bool = False, header: bool = True) -> str:
    """Format a frame as CSV; `spreadsheet_safe` puts `'` before every text that a spreadsheet reads as a formula."""
    flat = _flat(frame)
    if spreadsheet_safe:
        texts = pl.col(pl.String)
        safe = pl.when(texts.str.contains(FORMULA)).then("'" + texts).otherwise(texts)
        flat = flat.with_columns(safe.name.keep())
        flat = flat.rename({name: f"'{name}" for name in flat.columns if is_formula(name)})
    return flat.write_csv(include_header=header)


def write_csv(frames: Iterable[pl.DataFrame], file: IO[bytes], *, spreadsheet_safe: bool = False) -> None:
    """Write frames as one CSV table in UTF-8."""
    for number, frame in enumerate(frames):
        file.write(as_csv(frame, spreadsheet_safe=spreadsheet_safe, header=number == 0).encode())


def write_parquet(frames: Iterable[pl.DataFrame], file: Path | IO[bytes]) -> int:
    """Write frames as one Parquet table; returns the number of rows."""
    from pyarrow.parquet import ParquetWriter

    parts = (frame.to_arrow() for frame in frames)
    first = next(parts)
    count = 0
    with ParquetWriter(file, first.schema) as writer:
        for table in chain([first], parts):
            writer.write_table(table)
            count += table.num_rows
    return count


def as_text(value: Any) -> str:
    """Format bytes as hexadecimal digits, any other value as JSON."""
    return value.hex() if isinstance(value, bytes) else json.dumps(plain(value), ensure_ascii=False)


def _flat(frame: pl.DataFrame) -> pl.DataFrame:
    """Convert a frame for CSV: lists and structures to JSON, bytes to hexadecimal digits."""
    texts = [
        pl.Series(name, [None if value is None else as_text(value) for value in frame[name].to_list()], pl.String)
        for name, kind in frame.schema.items()
        if kind.is_nested() or kind == pl.Binary
    ]
    return frame.with_columns(texts)
