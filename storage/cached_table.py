"""Tables that stay open or in memory, and the inventory of a lake's tables."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import polars as pl
from deltalake.exceptions import DeltaError

from evalake.contracts.contract import Contract
from evalake.core.errors import LakeError
from evalake.storage.lake import FILE, Lake, Table, short_message

REOPEN_AFTER = 32  # versions: an open table holds every commit that it has read in memory


class OpenTable:
    """A table that stays open, so that a newer version is found from new log entries alone. Safe for threads."""

    def __init__(self, lake: Lake, contract: Contract) -> None:
        self._lake, self._contract = lake, contract
        self._lock = threading.Lock()
        self._table: Table | None = None
        self._opened_at = -1

    def version(self) -> int:
        """Look up the newest version of the table; -1 where it does not exist."""
        with self._lock:
            try:
                if self._table is None:
                    return self._open() if self._lake.exists(self._contract) else -1
                if self._table.version() >= self._opened_at + REOPEN_AFTER:
                    return self._open()
                self._table.update_incremental()
            except (DeltaError, OSError) as error:
                raise LakeError(f"cannot read the table {self._contract.table}: {short_message(error)}") from error
            return self._table.version()

    def _open(self) -> int:
        self._table = self._lake.open(self._contract)
        self._opened_at = self._table.version()
        return self._opened_at

    def newest(self) -> Table:
        """Return the table at its newest version; the next lookup updates it. Raises LakeError where it is gone."""
        self.version()
        if self._table is None:
            raise LakeError(f"the table {self._contract.table} of the lake {self._lake.uri} is gone: run again")
        return self._table

    def files(self) -> frozenset[str]:
        """List the files of the version that `version` last returned; empty where the table does not exist."""
        with self._lock:
            return frozenset() if self._table is None else frozenset(self._table.file_uris())


class CachedTable:
    """The current rows of a table, in memory. A new version reads only its new files. Safe for threads."""

    def __init__(self, lake: Lake, contract: Contract, columns: Sequence[str] | None = None, suite: str | None = None):
        self._lake, self._contract, self._suite = lake, contract, suite
        self._table = OpenTable(lake, contract)
        self._columns = list(columns) if columns else [column.name for column in contract.columns]
        self._lock = threading.Lock()
        self._version = -1
        self._stored = pl.DataFrame(schema={FILE: pl.String})  # the rows with their files
        self._files: frozenset[str] = frozenset()
        self._rows: pl.DataFrame | None = None

    def rows(self) -> pl.DataFrame:
        """Return the rows, the same object until the table changes; empty where there is no table."""
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
        kept = self._stored.filter(pl.col(FILE).is_in(files))
        self._stored = pl.concat([kept, read], rechunk=True) if kept.height else read
        self._files = files
        return self._stored.drop(FILE)


INVENTORY: dict[str, pl.DataType] = {
    "table": pl.String(),
    "rows": pl.Int64(),
    "version": pl.Int64(),
    "files": pl.Int64(),
    "bytes": pl.Int64(),
    "changed_at": pl.Datetime("us", "UTC"),
    "description": pl.String(),
}


def inventory(lake: Lake, contracts: Sequence[Contract]) -> pl.DataFrame:
    """List the tables that exist with their sizes, the most recently changed first."""
    with ThreadPoolExecutor() as threads:
        rows = [row for row in threads.map(lambda contract: _row(lake, contract), contracts) if row is not None]
    return pl.DataFrame(rows, schema=INVENTORY, orient="row").sort("changed_at", descending=True, nulls_last=True)


def _row(lake: Lake, contract: Contract) -> dict[str, Any] | None:
    table = lake.find(contract.table)
    if table is None:
        return None
    files = pl.DataFrame(table.get_add_actions(flatten=True))
    last = table.history(1)  # empty where the folder's path has a `#`
    return {
        "table": contract.table,
        "rows": table.count(),
        "version": table.version(),
        "files": files.height,
        "bytes": int(files["size_bytes"].sum()) if files.height else 0,
        "changed_at": datetime.fromtimestamp(last[0]["timestamp"] / 1000, UTC) if last else None,
        "description": contract.description,
    }
