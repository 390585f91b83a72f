"""Upkeep: join small files, drop what lost a race, write checkpoints, and remove files no snapshot needs."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError

from contracts.contract import Contract
from contracts.errors import LakeError
from contracts.tables import CALLS, SNAPSHOTS
from storage import ledger
from storage.lake import Lake

RETENTION_HOURS = 7 * 24


@dataclass(frozen=True, slots=True)
class Maintained:
    """What upkeep did (or, as a dry run, would do) to one table."""

    table: str
    files_before: int
    files_after: int
    superseded_rows: int  # of the ledger: replies that lost a race
    files_removed: int


def maintain(lake: Lake, contracts: Sequence[Contract], *, dry_run: bool = False) -> list[Maintained]:
    """Compact, checkpoint and vacuum every table that exists. Versions pinned by snapshots stay readable."""
    pinned = pinned_versions(lake)
    present = [contract for contract in contracts if lake.exists(contract)]
    return [_maintain(lake, contract, sorted(pinned.get(contract.table, ())), dry_run) for contract in present]


def pinned_versions(lake: Lake) -> dict[str, set[int]]:
    """By table, the versions that any snapshot was computed from."""
    pinned: dict[str, set[int]] = {}
    for text in lake.frame(SNAPSHOTS).select("pinned_versions").collect()["pinned_versions"]:
        for table, version in json.loads(text).items():
            if version is not None:
                pinned.setdefault(table, set()).add(version)
    return pinned


def _maintain(lake: Lake, contract: Contract, pinned: list[int], dry_run: bool) -> Maintained:
    table = lake.open(contract)
    before = len(table.file_uris())
    try:
        superseded = _drop_superseded(lake, table, dry_run) if contract is CALLS else 0
        if not dry_run:
            table.optimize.compact()
            table.create_checkpoint()
        removed = _vacuum(table, pinned, dry_run)
    except CommitFailedError as error:
        raise LakeError(
            f"the table {contract.table} was written to during its upkeep: run `evalake maintain` again"
        ) from error
    except (DeltaError, OSError) as error:
        raise LakeError(f"upkeep of the table {contract.table} failed: {str(error)[:300]}") from error
    return Maintained(contract.table, before, len(table.file_uris()), superseded, len(removed))


def _drop_superseded(lake: Lake, table: DeltaTable, dry_run: bool) -> int:
    """Delete the rows of the ledger that are not the reply of their key. Rare: two runs must have raced."""
    keys = lake.frame(CALLS, table.version()).select(*ledger.KEY, "ledger_version").collect()
    losers = keys.filter(pl.col("ledger_version") > pl.col("ledger_version").min().over(ledger.KEY))
    if not dry_run:
        for row in losers.iter_rows(named=True):
            table.delete(
                f"prompt_hash = '{row['prompt_hash']}' AND replicate = {row['replicate']} "
                f"AND ledger_version = {row['ledger_version']}"
            )
    return losers.height


def _vacuum(table: DeltaTable, pinned: list[int], dry_run: bool) -> list[str]:
    return table.vacuum(retention_hours=RETENTION_HOURS, dry_run=dry_run, keep_versions=pinned or None)
