"""Removes rows from a table, and every byte of them from its files, its log and its checkpoints.

Versions keep their numbers and log entries stay, so that stamps and checks still hold; versions before the removal
become unreadable. No other process may write to the table meanwhile. An interrupted removal can be run again.
"""

import json
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote

import polars as pl
from deltalake import DeltaTable

from evalake.contracts.contract import Contract
from evalake.contracts.tables import FORGOTTEN, QUARANTINE, SAMPLES
from evalake.core.errors import LakeError
from evalake.storage.commit import begin_merge, commit, file_sizes, open_store, read_object, write_object
from evalake.storage.integrity import data_files
from evalake.storage.lake import FILE, Lake
from evalake.storage.maintenance import remove, require_no_links

LOG = "_delta_log/"
_ENTRY = re.compile(rf"{LOG}\d{{20}}\.json")


def forgotten_samples(lake: Lake) -> set[str]:
    """Read the content hashes of samples that were forgotten, or whose removal was interrupted."""
    tombstones = lake.frame(FORGOTTEN).filter(pl.col("table_name") == SAMPLES.table).select("row_hash")
    return set(tombstones.collect()["row_hash"])


def unfinished(lake: Lake) -> dict[str, set[str]]:
    """Read what is being removed, or whose removal was cut off: by table, values of its identifying column."""
    rows = lake.frame(FORGOTTEN).filter(pl.col("first_version").is_null()).select("table_name", "row_hash").collect()
    return {table: set(of_table["row_hash"]) for (table,), of_table in rows.group_by("table_name")}


def erase(lake: Lake, name: str, column: str, values: Collection[str]) -> int:
    """Remove rows by the values of `column`, with every trace of them; return the table's version.

    Raises LakeError where the table holds links, or the removal fails: the same call continues it.
    """
    require_no_links(lake, name)

    def erase_once() -> int:
        _delete(_open(lake, name), column, values)
        remove(lake, name, _old_files(lake, name))
        _clear_log(lake, name)
        _open(lake, name).create_checkpoint()
        return _open(lake, name).version()

    return commit(
        erase_once,
        busy=f"the table {name} kept changing: stop what writes to it, and forget again",
        failed=f"cannot remove rows of the table {name} (forget again)",
    )


def _open(lake: Lake, name: str) -> DeltaTable:
    table = lake.find(name)
    if table is None:
        raise LakeError(f"the lake {lake.uri} has no table {name}")
    return table


def _delete(table: DeltaTable, column: str, values: Collection[str]) -> None:
    rows = pl.DataFrame({column: sorted(values)}, schema={column: pl.String})
    begin_merge(table, rows, [column]).when_matched_delete().execute()


def files_to_go(lake: Lake, name: str, column: str, values: Collection[str]) -> list[str]:
    """List the files that `erase` would remove, by path within the table."""
    table = lake.find(name)
    if table is None:
        return []
    paths = {PurePosixPath(path).name: path for path, _ in data_files(table)}  # Delta's file names are unique
    files = pl.scan_parquet(
        table.file_uris(),
        storage_options=dict(lake.storage_options) or None,
        include_file_paths=FILE,
        glob=False,
        hive_partitioning=False,
        missing_columns="insert",
        extra_columns="ignore",
    )
    held = files.filter(pl.col(column).is_in(sorted(values))).select(FILE).unique().collect()[FILE] if paths else ()
    return sorted({*_old_files(lake, name), *(paths[PurePosixPath(file).name] for file in held)})


def _old_files(lake: Lake, name: str) -> list[str]:
    """List the files outside the newest version: of older versions and dead writers, and checkpoints, by statistics."""
    live = {path for path, _ in data_files(_open(lake, name))}
    return [path for path in file_sizes(lake, name) if path not in live and not _ENTRY.fullmatch(path)]


def _clear_log(lake: Lake, name: str) -> None:
    """Remove the statistics of deleted files and the conditions of commits from the log: they quote deleted rows."""
    live = {path for path, _ in data_files(_open(lake, name))}
    store = open_store(lake, name)
    for path in sorted(filter(_ENTRY.fullmatch, file_sizes(lake, name))):
        actions = [json.loads(line) for line in read_object(store, path).split(b"\n") if line.strip()]
        cleared = [_clear(action, live) for action in actions]
        if any(cleared):
            write_object(store, path, ["\n".join(map(json.dumps, actions)).encode()])


def _clear(action: dict[str, Any], live: Collection[str]) -> bool:
    """Clear one action of the log; returns whether it changed."""
    for kind in ("add", "remove", "cdc"):
        file = action.get(kind)
        if file and file.get("stats") and unquote(file["path"]) not in live:
            del file["stats"]
            return True
    parameters = action.get("commitInfo", {}).get("operationParameters") or {}
    conditions = [name for name in parameters if "predicate" in name.lower()]
    for name in conditions:
        del parameters[name]
    return bool(conditions)


def refused_rows(lake: Lake, run_id: str, contracts: Sequence[Contract]) -> Iterator[dict[str, Any]]:
    """Yield a run's quarantined rows that were meant for these tables, except unreadable recorded lines."""
    tables = [contract.table for contract in contracts]
    refused = lake.frame(QUARANTINE).filter(pl.col("run_id") == run_id, pl.col("table_name").is_in(tables))
    for payload in refused.select("payload").collect()["payload"]:
        try:
            row = json.loads(payload)
        except ValueError:
            continue
        if isinstance(row, dict) and "sample_hash" in row:
            yield row
