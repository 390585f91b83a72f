"""Maintenance: join small files, drop what lost a race, write checkpoints, and remove files no snapshot needs."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl
from deltalake import DeltaTable

from contracts.contract import Contract
from contracts.tables import CALLS, SNAPSHOTS
from core.errors import EvalakeError, LakeError
from storage import ledger
from storage.ages import lag_hours, table_time
from storage.commit import commit, merger_of
from storage.compaction import compact
from storage.lake import KEEP_LOG, Lake
from storage.removal import remove, require_no_links

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
                compact(table, ledger.COMPACT_TARGET, ledger.COMPACTED)
            else:
                compact(table)
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
