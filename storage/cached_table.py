"""A table kept open, so that reading its version is cheap; and one kept in memory, of which only new files are read."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
from deltalake.exceptions import DeltaError

from evalake.contracts.contract import Contract
from evalake.core.errors import LakeError
from evalake.storage.lake import FILE, Lake, Table, first_words

REOPEN_AFTER = 32  # versions: the engine keeps what it has read of each commit


class OpenTable:
    """A table that stays open, so that a look for a newer version reads only new log entries. Safe for threads."""

    def __init__(self, lake: Lake, contract: Contract) -> None:
        self._lake, self._contract = lake, contract
        self._lock = threading.Lock()
        self._table: Table | None = None
        self._opened_at = -1
        location = lake.location(contract)
        self._log = None if "://" in location else Path(location, "_delta_log")

    def version(self) -> int:
        """Look up the newest version of the table; -1 where it does not exist."""
        with self._lock:
            try:
                if self._table is None:
                    return self._open() if self._is_there() else -1
                if self._may_have_moved(version := self._table.version()):
                    if version >= self._opened_at + REOPEN_AFTER:
                        return self._open()
                    self._table.update_incremental()
            except (DeltaError, OSError) as error:
                raise LakeError(f"cannot read the table {self._contract.table}: {first_words(error)}") from error
            return self._table.version()

    def _open(self) -> int:
        self._table = self._lake.open(self._contract)
        self._opened_at = self._table.version()
        return self._opened_at

    def newest(self) -> Table:
        """Look up the newest version, and return the table, which moves on with the next look.

        Raises LakeError where it does not exist.
        """
        self.version()
        if self._table is None:
            raise LakeError(f"the table {self._contract.table} of the lake {self._lake.uri} is gone: run again")
        return self._table

    def files(self) -> frozenset[str]:
        """List the files of the version that `version` returned last; none where the table does not exist."""
        with self._lock:
            return frozenset() if self._table is None else frozenset(self._table.file_uris())

    # To look up the next log entry in the file system is quicker than the engine, which takes a millisecond for it.

    def _is_there(self) -> bool:
        return (self._log is None or self._log.is_dir()) and self._lake.exists(self._contract)

    def _may_have_moved(self, version: int) -> bool:
        return self._log is None or (self._log / f"{version + 1:020}.json").exists()


class CachedTable:
    """The rows of a table as they are now. Safe for threads.

    Where the table's version has moved, only the files that are new are read: a table that is written to all the time
    has hundreds.
    """

    def __init__(self, lake: Lake, contract: Contract, columns: Sequence[str] | None = None, suite: str | None = None):
        self._lake, self._contract, self._suite = lake, contract, suite
        self._table = OpenTable(lake, contract)
        self._columns = list(columns) if columns else [column.name for column in contract.columns]
        self._lock = threading.Lock()
        self._version = -1
        self._held = pl.DataFrame(schema={FILE: pl.String})  # the rows, each with the file it is in
        self._files: frozenset[str] = frozenset()
        self._rows: pl.DataFrame | None = None

    def rows(self) -> pl.DataFrame:
        """Return the rows; none where there is no table. The frame is the same object until the table changes."""
        with self._lock:
            if (version := self._table.version()) != self._version or self._rows is None:
                self._rows = self._read()
                self._version = version
            return self._rows

    def _read(self) -> pl.DataFrame:
        files = self._table.files()
        new = self._lake.frame_of_files(self._contract, sorted(files - self._files))
        if self._suite is not None:
            new = new.filter(pl.col("suite") == self._suite)
        read = new.select(*self._columns, FILE).collect()
        kept = self._held.filter(pl.col(FILE).is_in(files))
        self._held = pl.concat([kept, read], rechunk=True) if kept.height else read
        self._files = files
        return self._held.drop(FILE)


# The inventory: which tables a lake has, how large they are, and when they last changed.


SCHEMA: dict[str, pl.DataType] = {
    "table": pl.String(),
    "rows": pl.Int64(),
    "version": pl.Int64(),
    "files": pl.Int64(),
    "bytes": pl.Int64(),
    "changed_at": pl.Datetime("us", "UTC"),
    "description": pl.String(),
}


def inventory(lake: Lake, contracts: Sequence[Contract]) -> pl.DataFrame:
    """List the tables that exist, one row each, the most recently changed first."""
    with ThreadPoolExecutor() as threads:  # most of it is waiting for files
        rows = [row for row in threads.map(lambda contract: _row(lake, contract), contracts) if row is not None]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row").sort("changed_at", descending=True, nulls_last=True)


def _row(lake: Lake, contract: Contract) -> dict[str, Any] | None:
    table = lake.find(contract.table)
    if table is None:
        return None
    files = pl.DataFrame(table.get_add_actions(flatten=True))
    last = table.history(1)  # the engine finds none in a folder with `#` in its path
    return {
        "table": contract.table,
        "rows": table.count(),
        "version": table.version(),
        "files": files.height,
        "bytes": int(files["size_bytes"].sum()) if files.height else 0,
        "changed_at": datetime.fromtimestamp(last[0]["timestamp"] / 1000, UTC) if last else None,
        "description": contract.description,
    }
