"""Maintenance: join small files, drop what lost a race, write checkpoints, and remove files no snapshot needs."""

import json
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import unquote

import polars as pl
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from pyarrow import fs

from evalake.contracts.contract import Contract
from evalake.contracts.tables import CALLS, SNAPSHOTS
from evalake.core import files
from evalake.core.errors import EvalakeError, LakeError
from evalake.storage import ledger
from evalake.storage.commit import commit, merger_of, store_of
from evalake.storage.lake import KEEP_LOG, Lake, first_words
from evalake.storage.ledger import join_files

# Ages: what time it is for a lake, so that a clock that is ahead makes nothing old.


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


# Removal: the one place where files of a lake's tables are deleted, and nothing that a link leads to.


REMOVERS = 8


def require_no_links(lake: Lake, table: str) -> None:
    """Raise LakeError, naming one, where the folder of a table is a link or holds links; an object store has none."""
    if folder := _folder(lake, table):
        files.require_no_links(folder)


def remove(lake: Lake, table: str, paths: Sequence[str]) -> None:
    """Remove files of a table by their path within it. Raises LakeError where one leads elsewhere, or stays."""
    try:
        if folder := _folder(lake, table):
            files.remove_below(folder, paths)
            return
        store = store_of(lake, table)
        with ThreadPoolExecutor(REMOVERS) as pool:
            list(pool.map(store.delete_file, paths))
    except (DeltaError, OSError) as error:
        raise LakeError(f"cannot remove files of the table {table}: {first_words(error)}") from error


def _folder(lake: Lake, table: str) -> Path | None:
    """Find the folder of a table; None where the lake is in an object store. The lake itself may be a link."""
    scheme, there, path = lake.uri.partition("://")
    if there and scheme != "file":
        return None
    return (Path(unquote(path)) if there else Path(lake.uri)).resolve() / table


RETENTION_HOURS = 7 * 24  # readers and writers that are under way may still need files that are younger


@dataclass(frozen=True, slots=True)
class Maintained:
    """What maintenance did (or, as a dry run, would do) to one table."""

    table: str
    files_before: int
    files_after: int | None  # None for a dry run: how many a compaction leaves is known once it is made
    superseded_rows: int  # of the ledger: replies that lost a race
    removed: tuple[str, ...]  # files, by their path within the table

    @property
    def files_removed(self) -> int:
        """How many files that were."""
        return len(self.removed)


def maintain(
    lake: Lake, contracts: Sequence[Contract], *, dry_run: bool = False, retention_hours: int = RETENTION_HOURS
) -> list[Maintained]:
    """Compact, checkpoint and vacuum every table that exists, and add constraints it lacks.

    Versions pinned by snapshots stay readable. May run beside any number of writers, unless `retention_hours` is
    shorter than they take to commit; 0 keeps no old file for its age. Raises LakeError where a table could not be
    maintained, one that holds links among them; the others still are.
    """
    pinned = pinned_versions(lake)
    done, failures = [], []
    for contract in contracts:
        try:
            if lake.exists(contract):
                keep = sorted(pinned.get(contract.table, ()))
                done.append(_maintain(lake, contract, keep, retention_hours, dry_run))
        except EvalakeError as error:
            failures.append(str(error))
    if failures:
        raise LakeError(f"{len(failures)} tables need help (`evalake check` says which): {'; '.join(failures)}")
    return done


def pinned_versions(lake: Lake) -> dict[str, set[int]]:
    """Collect by table the versions that any snapshot was computed from and that `forget` has not removed."""
    pinned: dict[str, set[int]] = {}
    first = lake.first_versions()
    for text in lake.frame(SNAPSHOTS).select("pinned_versions").collect()["pinned_versions"]:
        for table, version in json.loads(text).items():
            if version is not None and version >= first.get(table, 0):
                pinned.setdefault(table, set()).add(version)
    return pinned


def _maintain(lake: Lake, contract: Contract, keep: list[int], retention_hours: int, dry_run: bool) -> Maintained:
    require_no_links(lake, contract.table)
    opened = lake.open(contract)
    before, superseded = len(opened.file_uris()), 0
    lag = lag_hours(table_time(lake, opened, contract.table))  # before the commits of this maintenance
    hours = retention_hours and retention_hours + lag

    def maintain_once() -> Maintained:
        nonlocal superseded
        table = lake.open(contract) if dry_run else lake.ensure(contract)
        if contract is CALLS:
            superseded = max(superseded, _drop_superseded(table, dry_run))
        if not dry_run:
            _keep_log(table)
            if contract is CALLS:
                join_files(table, ledger.COMPACT_TARGET, ledger.COMPACTED)
            else:
                join_files(table)
        old = _old_files(table, keep, hours)
        if not dry_run:
            remove(lake, contract.table, old)
            if lag < RETENTION_HOURS:  # else this clock may be ahead, by which a checkpoint drops what was removed
                table.create_checkpoint()
        after = None if dry_run else len(table.file_uris())
        return Maintained(contract.table, before, after, superseded, tuple(old))

    return commit(
        maintain_once,
        busy=f"the table {contract.table} kept changing during its maintenance: run `evalake maintain` again",
        failed=f"maintenance of the table {contract.table} failed",
    )


def _keep_log(table: DeltaTable) -> None:
    """Have the engine remove no log entry for its age, as tables of earlier versions let it do after ten years."""
    if KEEP_LOG.items() - table.metadata().configuration.items():
        table.alter.set_table_properties(dict(KEEP_LOG), raise_if_not_exists=False)


def _drop_superseded(table: DeltaTable, dry_run: bool) -> int:
    """Delete, in one commit, the rows of the ledger that are not the reply of their key."""
    losers = ledger.superseded(pl.scan_delta(table)).collect()
    if losers.height and not dry_run:
        merger_of(table, losers, losers.columns).when_matched_delete().execute()
    return losers.height


def _old_files(table: DeltaTable, keep: list[int], hours: int) -> list[str]:
    """List old files that neither the newest version nor a kept one has; those of writers that died, too."""
    return table.vacuum(
        retention_hours=hours,
        enforce_retention_duration=hours >= RETENTION_HOURS,
        dry_run=True,
        full=True,
        keep_versions=keep or None,
    )
