"""Scorings as the log sees them: one that starts unless another stands against it, and a table read when it moves."""

import threading
from collections.abc import Sequence

import polars as pl
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError

from contracts.arrow import conform
from contracts.contract import Contract
from contracts.errors import LakeError
from storage.lake import Lake, first_words
from storage.landing import CONFLICT_RETRIES


def insert_unless(lake: Lake, contract: Contract, rows: pl.DataFrame, unless: str) -> int:
    """Insert each row unless some row of the table meets `unless`, SQL over `old` and `new`; returns how many were.

    Who races is put in order by the table's log: a merge that lost is made again against what the winner wrote, so of
    rows that stand against one another exactly one gets in. Rows of one call must not stand against one another.
    Raises LakeError where the lake does not take the commit.
    """
    table = lake.ensure(contract)
    source = conform(rows, contract).to_arrow()
    try:
        for attempt in CONFLICT_RETRIES.copy():
            with attempt:
                if attempt.retry_state.attempt_number > 1:
                    table.update_incremental()
                merger = table.merge(
                    source, predicate=unless, source_alias="new", target_alias="old", streamed_exec=False
                )
                done = merger.when_not_matched_insert_all().execute()
    except CommitFailedError as error:
        raise LakeError(f"the table {contract.table} kept changing while rows were inserted; try again") from error
    except (DeltaError, OSError) as error:
        raise LakeError(f"cannot write the table {contract.table}: {first_words(error)}") from error
    return int(done["num_target_rows_inserted"])


class Watched:
    """The rows of a table as they are now, read again only where its version has moved. Safe for threads."""

    def __init__(self, lake: Lake, contract: Contract, columns: Sequence[str] | None = None, suite: str | None = None):
        self._lake, self._contract, self._suite = lake, contract, suite
        self._columns = list(columns) if columns else [column.name for column in contract.columns]
        self._lock = threading.Lock()
        self._table: DeltaTable | None = None
        self._version = -1
        self._rows: pl.DataFrame | None = None

    def rows(self) -> pl.DataFrame:
        """The rows; none where the table does not exist. The frame is the same object until the table changes."""
        with self._lock:
            if (version := self._newest()) != self._version or self._rows is None:
                self._rows = self._read()
                self._version = version
            return self._rows

    def _newest(self) -> int:
        if self._table is None:
            if not self._lake.exists(self._contract):
                return -1
            self._table = self._lake.open(self._contract)
        try:
            self._table.update_incremental()
        except (DeltaError, OSError) as error:
            raise LakeError(f"cannot read the table {self._contract.table}: {first_words(error)}") from error
        return self._table.version()

    def _read(self) -> pl.DataFrame:
        frame = self._lake.frame(self._contract) if self._table is None else pl.scan_delta(self._table)
        if self._suite is not None:
            frame = frame.filter(pl.col("suite") == self._suite)
        return frame.select(self._columns).collect()
