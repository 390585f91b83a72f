"""Backs up a lake while others write to it: copies the files that the backup lacks.

Data files and log entries never change, so each backup continues the one before. docs/backup.md explains why the
order of copying keeps every row that was committed before the backup began.
"""

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from pyarrow import fs

from evalake.contracts.contract import Contract
from evalake.contracts.tables import CONTRACT_CHECKS, RUNS, SNAPSHOTS
from evalake.core.errors import LakeError, UsageError
from evalake.storage import secret
from evalake.storage.lake import Lake
from evalake.storage.maintenance import remove, require_no_links
from evalake.storage.objects import failing_as, file_sizes, open_store, read_object, write_object

FIRST = (CONTRACT_CHECKS.table, RUNS.table, SNAPSHOTS.table)  # their rows name versions of the other tables
LOG_FILE = re.compile(r"_delta_log/(\d{20})\.")
COPIERS = 8
CHUNK_BYTES = 1 << 22


@dataclass(frozen=True, slots=True)
class BackedUp:
    """The files copied for one table."""

    table: str
    version: int  # the newest in the copy
    files_copied: int
    bytes_copied: int
    files_there: int  # from earlier backups


def back_up(lake: Lake, to: Lake, contracts: Sequence[Contract]) -> list[BackedUp]:
    """Update the backup in `to`; return one entry for each table that exists.

    An interrupted backup is continued by the next. Raises LakeError where the backup is of another lake, or where the
    lake has since lost or changed copied entries; that table is then not copied.
    """
    if to.address.rstrip("/") == lake.address.rstrip("/"):
        raise UsageError(f"the backup of {lake.uri} cannot be the lake itself: name another folder or bucket")
    there = {path.partition("/")[0] for path in file_sizes(lake) if "/_delta_log/" in path}  # some without code here
    named = {contract.table for contract in contracts} | there - {secret.FOLDER}
    tables = sorted(named, key=lambda table: (table not in FIRST, table))
    tables.append(secret.FOLDER)  # last: copied calls may have been fenced by it
    for table in tables:  # a link would copy files from outside the lake, or to a folder outside the backup
        for each in (lake, to):
            require_no_links(each, table)
    logs = {table: _log(lake, table) for table in tables}
    return [_copy_table(lake, to, table, log) for table, log in logs.items() if log]


def _log(lake: Lake, table: str) -> dict[str, int]:
    """List a table's log files up to its newest entry, without the hint `_last_checkpoint`."""
    files = {path: size for path, size in file_sizes(lake, table).items() if LOG_FILE.match(path)}
    newest = max((_number(path) for path in files if path.endswith(".json")), default=-1)
    return {path: size for path, size in files.items() if _number(path) <= newest}


def _copy_table(lake: Lake, to: Lake, table: str, log: Mapping[str, int]) -> BackedUp:
    there = file_sizes(to, table)
    if other := _other_entries(lake, to, table, log, there):
        if table != CONTRACT_CHECKS.table:
            raise LakeError(
                f"the backup {to.uri} holds {len(other)} log entries of {table} that the lake lacks or has with other "
                f"contents (the first is {Path(other[0]).name}): back up to a new folder, and keep this one until "
                "`evalake check` finds the lake in order"
            )
        remove(to, table, list(there))  # a check of the backup has written its results there
        there = {}
    data = {path: size for path, size in file_sizes(lake, table).items() if _is_data(path)}
    # Data first, so that an interrupted copy has no log entry whose files it lacks
    new_data = [path for path, size in data.items() if there.get(path) != size]
    new_log = [path for path, size in log.items() if there.get(path) != size]
    copied = _copy(lake, to, table, new_data) + _copy(lake, to, table, new_log)
    new = len(new_data) + len(new_log)
    return BackedUp(table, max(map(_number, log)), new, copied, len(data) + len(log) - new)


def _other_entries(lake: Lake, to: Lake, table: str, log: Mapping[str, int], there: Mapping[str, int]) -> list[str]:
    """List the backup's log entries that differ from the lake's: the newest by its bytes, the others by size."""
    entries = sorted(path for path in there if LOG_FILE.match(path) and path.endswith(".json"))
    other = [path for path in entries if log.get(path) != there[path]]
    if entries and not other:
        here, copied = (read_object(open_store(each, table), entries[-1]) for each in (lake, to))
        return [] if here == copied else [entries[-1]]
    return other


def _copy(lake: Lake, to: Lake, table: str, paths: Sequence[str]) -> int:
    """Copy files of a table, several at a time; returns the bytes copied."""
    if not paths:
        return 0
    if "://" not in to.uri:
        Path(to.uri, table).mkdir(parents=True, exist_ok=True)
    source, target = open_store(lake, table), open_store(to, table)
    with failing_as(f"cannot copy {table} to {to.uri}"), ThreadPoolExecutor(COPIERS) as pool:
        return sum(pool.map(lambda path: _copy_file(source, target, path), paths))


def _copy_file(source: fs.PyFileSystem, target: fs.PyFileSystem, path: str) -> int:
    try:
        reader = source.open_input_stream(path)
    except FileNotFoundError:
        return 0  # maintenance has removed it, so no version needs it
    with reader:
        return write_object(target, path, iter(lambda: reader.read(CHUNK_BYTES), b""))


def _is_data(path: str) -> bool:
    return path.endswith(".parquet") and not path.startswith("_delta_log/")


def _number(path: str) -> int:
    """Read the version of a log file from its name."""
    return int(Path(path).name.split(".")[0])
