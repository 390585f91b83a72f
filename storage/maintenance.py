"""Maintains tables: joins small files, drops superseded replies, writes checkpoints, removes unneeded files."""

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

from evalake.contracts.contract import Contract
from evalake.contracts.tables import CALLS, SNAPSHOTS
from evalake.core import files
from evalake.core.errors import EvalakeError, LakeError
from evalake.storage import ledger
from evalake.storage.lake import KEEP_LOG, Lake
from evalake.storage.landing import begin_merge, commit
from evalake.storage.ledger import join_files
from evalake.storage.objects import failing_as, modified_at, open_store

REMOVERS = 8  # threads that delete files
RETENTION_HOURS = 7 * 24  # running readers and writers may still need younger files


def table_time(lake: Lake, table: DeltaTable, name: str) -> datetime:
    """Find the time from which ages count: that of the newest commit, or now if earlier. A wrong clock ages no file."""
    written = modified_at(lake, name, f"_delta_log/{table.version():020}.json")
    with failing_as(f"cannot read the log of the table {name}"):
        told = [each["timestamp"] for each in table.history(1) if "timestamp" in each]
    times = [datetime.now(UTC), *(datetime.fromtimestamp(each / 1000, UTC) for each in told)]
    return min([*times, written] if written else times)


def lake_time(lake: Lake, contracts: Iterable[Contract]) -> datetime:
    """Find the time of the newest commit to any table of a lake."""
    times = []
    for contract in contracts:
        with suppress(EvalakeError):  # a damaged table is skipped
            if table := lake.find(contract.table):
                times.append(table_time(lake, table, contract.table))
    return max(times, default=datetime.now(UTC))


def lag_hours(then: datetime) -> int:
    """Compute how many hours ago a time was by this machine's clock, rounded up."""
    return max(-((then - datetime.now(UTC)) // timedelta(hours=1)), 0)


def require_no_links(lake: Lake, table: str) -> None:
    """Raise LakeError, naming the first, where a table's local folder is or holds a link."""
    if folder := _folder(lake, table):
        files.require_no_links(folder)


def remove(lake: Lake, table: str, paths: Sequence[str]) -> None:
    """Remove files of a table by path, through no link. Raises LakeError where a file is outside or stays."""
    with failing_as(f"cannot remove files of the table {table}"):
        if folder := _folder(lake, table):
            files.remove_below(folder, paths)
            return
        store = open_store(lake, table)
        with ThreadPoolExecutor(REMOVERS) as pool:
            list(pool.map(store.delete_file, paths))


def _folder(lake: Lake, table: str) -> Path | None:
    """Find a table's folder; None in an object store. The lake itself may be a link."""
    scheme, there, path = lake.address.partition("://")
    if there and scheme != "file":
        return None
    return (Path(unquote(path)) if there else Path(lake.address)).resolve() / table


@dataclass(frozen=True, slots=True)
class Maintained:
    """The changes that maintenance made to one table, or would make in a dry run."""

    table: str
    files_before: int
    files_after: int | None  # None in a dry run
    superseded_rows: int  # of the ledger: replies that came after the first
    removed: tuple[str, ...]  # files, by path within the table

    @property
    def files_removed(self) -> int:
        """How many files were removed."""
        return len(self.removed)


def maintain(
    lake: Lake, contracts: Sequence[Contract], *, dry_run: bool = False, retention_hours: int = RETENTION_HOURS
) -> list[Maintained]:
    """Compact, checkpoint and vacuum every table that exists, and add missing constraints.

    Versions pinned by snapshots stay readable. Writers may go on if they commit within `retention_hours`; 0 keeps no
    old file. Raises LakeError, after the other tables, where a table fails or holds links.
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
        raise LakeError(f"{len(failures)} tables failed (run `evalake check`): {'; '.join(failures)}")
    return done


def pinned_versions(lake: Lake) -> dict[str, set[int]]:
    """Collect by table the versions that snapshots were computed from, without those that `forget` removed."""
    pinned: dict[str, set[int]] = {}
    first = lake.first_versions()
    with failing_as("cannot read which versions snapshots need"):
        texts = lake.frame(SNAPSHOTS).select("pinned_versions").collect()["pinned_versions"]
    for text in texts:
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
                _mark_distinct(table)
            else:
                join_files(table)
        old = _old_files(table, keep, hours)
        if not dry_run:
            remove(lake, contract.table, old)
            if lag < RETENTION_HOURS:  # else this clock may be ahead, and a checkpoint would drop removals too early
                table.create_checkpoint()
        after = None if dry_run else len(table.file_uris())
        return Maintained(contract.table, before, after, superseded, tuple(old))

    return commit(
        maintain_once,
        busy=f"the table {contract.table} kept changing during its maintenance: run `evalake maintain` again",
        failed=f"maintenance of the table {contract.table} failed",
    )


def _keep_log(table: DeltaTable) -> None:
    """Switch off the removal of old log entries in tables of earlier versions."""
    if KEEP_LOG.items() - table.metadata().configuration.items():
        table.alter.set_table_properties(dict(KEEP_LOG), raise_if_not_exists=False)


def _drop_superseded(table: DeltaTable, dry_run: bool) -> int:
    """Delete the ledger's superseded rows in one commit; returns their number."""
    losers = ledger.superseded(pl.scan_delta(table)).collect()
    if losers.height and not dry_run:
        begin_merge(table, losers, losers.columns).when_matched_delete().execute()
    return losers.height


def _mark_distinct(table: DeltaTable) -> None:
    """Note on the ledger that no key has two rows, where that is so; queries then compare later rows only."""
    version, known = table.version(), ledger.distinct_until(table)
    rows = pl.scan_delta(table)
    if known is not None and rows.filter(pl.col("ledger_version") > known).head(1).collect().is_empty():
        return
    hashes = rows.select(pl.struct(ledger.KEY).hash()).collect(engine="streaming").to_series()
    if hashes.n_unique() == hashes.len():
        table.alter.set_table_properties({ledger.DISTINCT: str(version)}, raise_if_not_exists=False)


def _old_files(table: DeltaTable, keep: list[int], hours: int) -> list[str]:
    """List old files outside the newest and the kept versions, including those of dead writers."""
    return table.vacuum(
        retention_hours=hours,
        enforce_retention_duration=hours >= RETENTION_HOURS,
        dry_run=True,
        full=True,
        keep_versions=keep or None,
    )
