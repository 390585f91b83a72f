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
from storage.commit import commit, merger_of
from storage.compaction import compact
from storage.lake import Lake

RETENTION_HOURS = 7 * 24  # readers and writers that are under way may still need files that are younger


@dataclass(frozen=True, slots=True)
class Maintained:
    """What maintenance did (or, as a dry run, would do) to one table."""

    table: str
    files_before: int
    files_after: int | None  # None for a dry run: how many a compaction leaves is known once it is made
    superseded_rows: int  # of the ledger: replies that lost a race
    files_removed: int


def maintain(
    lake: Lake, contracts: Sequence[Contract], *, dry_run: bool = False, retention_hours: int = RETENTION_HOURS
) -> list[Maintained]:
    """Compact, checkpoint and vacuum every table that exists, and add constraints it lacks.

    Versions pinned by snapshots stay readable. May run beside any number of writers, unless `retention_hours` is
    shorter than they take to commit. Raises LakeError where a table could not be maintained; the others still are.
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
    before = len(lake.open(contract).file_uris())
    superseded = 0

    def maintain_once() -> Maintained:
        nonlocal superseded
        table = lake.open(contract) if dry_run else lake.ensure(contract)
        if contract is CALLS:
            superseded = max(superseded, _drop_superseded(table, dry_run))
        if not dry_run:
            if contract is CALLS:
                compact(table, ledger.COMPACT_TARGET, ledger.COMPACTED)
            else:
                compact(table)
            table.create_checkpoint()
        removed = _vacuum(table, keep, retention_hours, dry_run)
        return Maintained(contract.table, before, None if dry_run else len(table.file_uris()), superseded, len(removed))

    return commit(
        maintain_once,
        busy=f"the table {contract.table} kept changing during its maintenance: run `evalake maintain` again",
        failed=f"maintenance of the table {contract.table} failed",
    )


def _drop_superseded(table: DeltaTable, dry_run: bool) -> int:
    """Delete, in one commit, the rows of the ledger that are not the reply of their key."""
    losers = ledger.superseded(pl.scan_delta(table)).collect()
    if losers.height and not dry_run:
        merger_of(table, losers, losers.columns).when_matched_delete().execute()
    return losers.height


def _vacuum(table: DeltaTable, keep: list[int], retention_hours: int, dry_run: bool) -> list[str]:
    """Remove old files that neither the newest version nor a kept one has; those of writers that died, too."""
    return table.vacuum(
        retention_hours=retention_hours,
        enforce_retention_duration=retention_hours >= RETENTION_HOURS,
        dry_run=dry_run,
        full=True,
        keep_versions=keep or None,
    )
