"""Integrity of the stored tables: can the log be read, are the files there, are the keys unique, is the data whole."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from contracts.contract import Contract
from contracts.delta import check_constraints
from contracts.errors import EvalakeError
from contracts.tables import CALLS
from storage.lake import Lake, constraints

CHUNK_ROWS = 100_000


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong with a table, and how to mend it."""

    table: str
    problem: str
    mend: str


def find_damage(lake: Lake, contract: Contract) -> Iterator[Finding]:
    """What is wrong with the log, the files, the constraints or the keys of a table that exists."""
    try:
        table = lake.open(contract)
        missing = table.repair(dry_run=True)["files_removed"]
    except (EvalakeError, DeltaError, OSError) as error:
        yield Finding(
            contract.table, f"cannot be opened: {str(error)[:300]}", "restore the table's folder from a backup"
        )
        return
    if missing:
        names = ", ".join(missing[:3]) + (" …" if len(missing) > 3 else "")
        mend = "restore the files from a backup, or run the suite again to fill what is gone"
        yield Finding(contract.table, f"{len(missing)} data files are gone: {names}", mend)
        return
    if absent := sorted(check_constraints(contract).keys() - constraints(table)):
        yield Finding(
            contract.table, f"lacks the constraints {', '.join(absent)}", "run or import anything: they are added again"
        )
    yield from _find_damaged_rows(table, contract)


def chunks(lake: Lake, contract: Contract) -> Iterator[pl.DataFrame]:
    """The rows of a table in frames of bounded size."""
    yield from lake.frame(contract).collect_batches(chunk_size=CHUNK_ROWS)


def _find_damaged_rows(table: DeltaTable, contract: Contract) -> Iterator[Finding]:
    if not contract.append_only:
        keys = pl.scan_delta(table).select(contract.key)
        repeated = keys.group_by(contract.key).len().filter(pl.col("len") > 1).select(pl.len()).collect().item()
        if repeated:
            mend = "restore an earlier version, or delete the later rows of each key"
            yield Finding(contract.table, f"{repeated} keys stand in more than one row", mend)
    if contract is CALLS:
        asked = pl.scan_delta(table).filter(pl.col("origin") == "call").select("prompt_hash", "request")
        wrong = sum(
            hashlib.sha256(request.encode()).hexdigest() != prompt_hash
            for chunk in asked.collect_batches(chunk_size=CHUNK_ROWS)
            for prompt_hash, request in chunk.iter_rows()
        )
        if wrong:
            yield Finding(
                CALLS.table, f"{wrong} requests do not hash to their prompt hash", "restore the table from a backup"
            )
