"""Ages: what time it is for a lake, so that a clock that is ahead makes nothing old.

What is young may still be needed: a file whose writer is about to commit, a version that is being read. The clock of
this machine alone does not say what is old. The newest commit does, by the time that the store wrote it and the time
that its writer gave: the earliest of the three counts.
"""

from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from deltalake import DeltaTable
from pyarrow import fs

from contracts.contract import Contract
from core.errors import EvalakeError
from storage.lake import Lake
from storage.objects import store_of


def table_time(lake: Lake, table: DeltaTable, name: str) -> datetime:
    """Find the time by which files of a table are old: that of its newest commit, and never after this clock's."""
    version = table.version()
    entry = store_of(lake, name).get_file_info(f"_delta_log/{version:020}.json")
    told = [each["timestamp"] for each in table.history(1) if "timestamp" in each]
    times = [datetime.now(UTC), *(datetime.fromtimestamp(each / 1000, UTC) for each in told)]
    if entry.type == fs.FileType.File and entry.mtime is not None:
        times.append(entry.mtime)
    return min(times)


def lake_time(lake: Lake, contracts: Iterable[Contract]) -> datetime:
    """Find the time by which what lies beside a lake is old: that of the newest commit to any of its tables."""
    times = []
    for contract in contracts:
        with suppress(EvalakeError):  # of a damaged table nothing is believed
            if table := lake.find(contract.table):
                times.append(table_time(lake, table, contract.table))
    return max(times, default=datetime.now(UTC))


def lag_hours(then: datetime) -> int:
    """Compute how many hours, rounded up, a time is before what this machine's clock says."""
    return max(-((then - datetime.now(UTC)) // timedelta(hours=1)), 0)
