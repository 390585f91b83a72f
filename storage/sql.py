"""SQL over the tables: DuckDB reads pinned Delta scans in a process of its own, and can do nothing else.

What a query may do is not decided by reading its text. Inside, the engine is closed to files, network, extensions and
settings, and its configuration is locked before the query is seen. Outside, the operating system holds the process
to its memory and its time, forbids it to write files, and hands it none of our environment but what reading the lake
takes: an engine's own memory limit and interrupts do not reach into a single long function call.
"""

import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path

import polars as pl
import pyarrow as pa

from contracts import errors
from contracts.contract import Contract
from contracts.errors import EvalakeError, QueryError
from storage.lake import Lake
from storage.views import View, views

MEGABYTE = 2**20
GIGABYTE = 2**30

REFUSED = 3  # the exit code with which the process tells its reason, as JSON on the last line of standard error

# The process gets these and nothing else: no key of a model's provider can be in its memory.
_ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "VIRTUAL_ENV", "PYTHONHOME")
_ENVIRONMENT_OF_LAKES = ("AWS_", "AZURE_", "GOOGLE_", "SSL_CERT_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")


@dataclass(frozen=True)
class Limits:
    """What one query may use.

    `memory` is the engine's, in bytes; the process as a whole may use `spare` on top of what it has when the query
    begins and of that, for reading tables and for what the engine does not count.
    """

    seconds: float = 60.0
    memory: int = 2 * GIGABYTE
    spare: int = GIGABYTE
    rows: int = 10_000_000
    result: int = GIGABYTE


LIMITS = Limits()


@dataclass(frozen=True)
class Request:
    """All that the process is told."""

    lake: Lake
    contracts: tuple[Contract, ...]
    versions: Mapping[str, int]
    views: tuple[View, ...]
    sql: str
    limits: Limits


def query(
    lake: Lake,
    contracts: Sequence[Contract],
    sql: str,
    *,
    versions: Mapping[str, int] | None = None,
    limits: Limits = LIMITS,
) -> pl.DataFrame:
    """Run one query over the tables of `contracts`, each at its newest version or the one in `versions`, and the views.

    Raises QueryError with the engine's reason where the query is wrong, refused, or goes past its limits, LakeError
    where a table cannot be read.
    """
    pinned = dict(versions or {})
    if unknown := sorted(pinned.keys() - {contract.table for contract in contracts}):
        raise QueryError(f"there is no table {unknown[0]} to read at a version; `evalake tables` lists them")
    if not sql.isascii() and sql != sql.encode("utf-8", "replace").decode("utf-8"):
        raise QueryError("the query is not valid Unicode: give it as UTF-8")
    request = Request(lake, tuple(contracts), pinned, views(contracts), sql, limits)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "storage.query_process"],
        input=pickle.dumps(request),
        capture_output=True,
        env=_environment(),
        check=False,
    )
    if done.returncode != 0:
        raise _failure(done.returncode, done.stderr, limits)
    return _frame(done.stdout)


def _environment() -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in _ENVIRONMENT or name.upper().startswith(_ENVIRONMENT_OF_LAKES)
    }
    path = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
    return {**kept, "PYTHONPATH": path, "POLARS_MAX_THREADS": "2"}


def _failure(code: int, said: bytes, limits: Limits) -> EvalakeError:
    if code == REFUSED:
        reason = json.loads(said.splitlines()[-1])
        kind: type[EvalakeError] = getattr(errors, reason["kind"])
        return kind(reason["message"])
    if code == -signal.SIGALRM:
        return QueryError(f"the query was stopped at its time limit of {limits.seconds:g} s")
    if code > 0:
        reason = said.decode("utf-8", "replace").strip().splitlines()[-1:]
        return QueryError(f"the query's process failed: {' '.join(reason)[:300] or f'exit code {code}'}")
    return QueryError(
        f"the query was stopped: it wanted more memory than the {limits.memory // MEGABYTE:,} MB it may use, "
        f"or broke the engine (signal {-code})"
    )


def _distinct(names: Sequence[str]) -> list[str]:
    """The names with a number behind those that came before: two tables joined have columns of one name."""
    found: dict[str, None] = {}
    for name in names:
        numbered = (f"{name}_{number}" for number in count(1))
        found[next(each for each in chain([name], numbered) if each not in found)] = None
    return list(found)


def _frame(result: bytes) -> pl.DataFrame:
    with pa.ipc.open_stream(pa.py_buffer(result)) as stream:
        table = stream.read_all()
    table = table.rename_columns(_distinct(table.column_names))
    try:
        frame = pl.from_arrow(table)
    except pl.exceptions.PolarsError as error:
        raise QueryError(
            "the result has a column of a type that cannot be shown: cast it, an interval with epoch(…)"
        ) from error
    return frame if isinstance(frame, pl.DataFrame) else frame.to_frame()
