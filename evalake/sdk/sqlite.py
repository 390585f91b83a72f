"""SQLite files of others: read from a copy, and only data that is stored.

A file is copied first, with its journal or write-ahead log: opening the original takes locks that would hold up its
writers, and may create files beside it.
"""

import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

from evalake.core.errors import SourceError
from evalake.core.files import LARGEST_FILE, LARGEST_IN_ALL, Files

Rows = Callable[[str, Mapping[str, Any]], Iterator[Mapping[str, Any]]]
"""A function from a query and its parameters to the rows it gives."""

LONGEST_CELL = 64 * 2**20  # bytes
PATIENCE_SECONDS = 60.0  # for one query
STEPS = 100_000  # of the engine between two looks at the clock
COPIES = 3  # attempts at a copy during which nobody wrote

_READS = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE, sqlite3.SQLITE_PRAGMA})
_NOT_STORED = "SELECT lower(name), '' FROM sqlite_master WHERE type IN ('table', 'view') AND rootpage = 0"
_COMPUTED = (
    "SELECT lower(m.name), lower(x.name) FROM sqlite_master m, pragma_table_xinfo(m.name) x"
    " WHERE m.type = 'table' AND m.rootpage > 0 AND x.hidden IN (2, 3)"
)


@contextmanager
def open_sqlite(
    path: Path, tables: Collection[str], files: Files | None = None, what: str = "a SQLite database"
) -> Iterator[Rows]:
    """Open a copy of a file for queries.

    Args:
        path: The file.
        tables: Tables that are to be read, in lower case; a query may read others.
        files: The files of a source, where it is one of them.
        what: The kind of database that it should be, for messages.

    Raises:
        SourceError: It is no database, keeps being written to, or computes what is asked for.
        FileRefusedError: It, or what lies beside it as its journal or log, leads out of the source, is no regular file,
            or is too large.
    """
    refused: list[str] = []
    with TemporaryDirectory(prefix="evalake-sqlite-") as folder:
        connection = sqlite3.connect(_copy(path, Path(folder), files or Files(path)))
        try:
            connection.row_factory = sqlite3.Row
            connection.text_factory = lambda text: text.decode("utf-8", "replace")  # one bad row is no bad database
            connection.execute("PRAGMA trusted_schema = OFF")  # what its author wrote calls no function
            connection.execute("PRAGMA query_only = ON")
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_CELL)
            deadline = monotonic() + PATIENCE_SECONDS
            connection.set_progress_handler(lambda: monotonic() > deadline, STEPS)
            computed = {
                (table, column) for query in (_NOT_STORED, _COMPUTED) for table, column in connection.execute(query)
            }

            refused += [_why(*each) for each in computed if each[0] in tables]
            if refused:
                raise SourceError(f"{path} cannot be read as {what}: {refused[0]}")

            def decide(action: int, table: str | None, column: str | None, *_: str | None) -> int:
                if action != sqlite3.SQLITE_READ:
                    return sqlite3.SQLITE_OK if action in _READS else sqlite3.SQLITE_DENY
                asked, name = (table or "").lower(), (column or "").lower()
                refused.extend(_why(*each) for each in ((asked, ""), (asked, name)) if each in computed)
                return sqlite3.SQLITE_DENY if refused else sqlite3.SQLITE_OK

            connection.set_authorizer(decide)

            def rows(query: str, parameters: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
                nonlocal deadline
                deadline = monotonic() + PATIENCE_SECONDS
                for row in connection.execute(query, parameters):
                    given = monotonic()
                    yield dict(row)
                    deadline += monotonic() - given

            yield rows
        except sqlite3.Error as error:
            why = "its queries take too long" if str(error) == "interrupted" else error
            raise SourceError(f"{path} cannot be read as {what}: {refused[0] if refused else why}") from error
        finally:
            connection.close()


def _why(table: str, column: str) -> str:
    """Say why what a file's author wrote, and SQLite would compute, is not read."""
    return f"{table}.{column} is computed, not stored" if column else f"{table} is a view, not a table"


def _copy(path: Path, folder: Path, files: Files) -> Path:
    """Copy the database with its sidecar files, while nobody writes to any of them."""
    for _ in range(COPIES):
        before = _state(path)
        beside = Files(path.parent if files.root.is_file() else files.root, LARGEST_FILE, LARGEST_IN_ALL)
        for file in before:
            beside.copy(file, folder / file.name, LARGEST_IN_ALL if file == path else None)
        if _state(path) == before:
            return folder / path.name
        for file in before:
            (folder / file.name).unlink()
    raise SourceError(f"{path} is being written to: try again when it is quiet, or give a copy of it")


def _state(path: Path) -> dict[Path, tuple[int, int]]:
    """Read size and time of last change of the database file, and of its journal or write-ahead log if there is one."""
    files = (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-journal"))
    found = {}
    for file in files:
        with suppress(FileNotFoundError):
            found[file] = (status := file.lstat()).st_size, status.st_mtime_ns
    return found
