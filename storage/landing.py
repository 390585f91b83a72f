"""Exactly-once landing: rows are merged into their table by key, and a lost race is merged again."""

import threading
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import astuple, dataclass
from functools import cache
from operator import add

import polars as pl
from deltalake import DeltaTable, write_deltalake

from evalake.contracts.contract import ALWAYS, Contract
from evalake.contracts.engines.arrow import require_exact
from evalake.storage.commit import RIGHT_AFTER, commit, merger_of
from evalake.storage.lake import Lake

# What `land_together` is to land, by lake and table
_waiting: defaultdict[tuple[str, str], list[tuple[pl.DataFrame, Future[None]]]] = defaultdict(list)
_waiting_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Landed:
    """What a landing did: rows added, rows replaced as their contract allows, and rows that were there already."""

    inserted: int = 0
    replaced: int = 0
    already_present: int = 0

    def __add__(self, other: "Landed") -> "Landed":
        return Landed(*map(add, astuple(self), astuple(other)))


def land(lake: Lake, contract: Contract, rows: pl.DataFrame) -> Landed:
    """Merge `rows` into the contract's table by its key; rows of a key that is there already change nothing.

    The exception is a row that its contract lets a later one replace. Of several rows with
    one key in `rows` the first counts. Raises SchemaMismatchError where the frame is not exactly the contract's,
    ContractError where a table constraint refuses a row, LakeError where the lake does not take the commit.
    """
    require_exact(rows, contract)
    source = rows.unique(subset=list(contract.key), keep="first", maintain_order=True)
    if source.is_empty():
        return Landed()
    table = lake.ensure(contract)
    # Most rows of a table of how things stand replace one, and only a merge does that.
    bring = _merge if contract.replaced_when == ALWAYS else _append_new
    done = _commit(table, contract, lambda: bring(table, contract, source))
    inserted, replaced = int(done["num_target_rows_inserted"]), int(done["num_target_rows_updated"])
    return Landed(inserted, replaced, source.height - inserted - replaced)


def land_together(lake: Lake, contract: Contract, rows: pl.DataFrame) -> None:
    """Land rows as `land` does, in one commit with those that other threads of this process bring meanwhile.

    A merge of one row takes as long as one of many. Which rows were there already is not told. Raises as `land` does; a
    row that a constraint refuses also keeps out those of the same commit.
    """
    require_exact(rows, contract)
    place = lake.uri, contract.table
    with _waiting_lock:
        _waiting[place].append(mine := (rows, Future[None]()))
    with _turn(lake.ensure(contract).table_uri):
        if not mine[1].done():
            with _waiting_lock:
                together = _waiting.pop(place)
            try:
                land(lake, contract, pl.concat([frame for frame, _ in together]))
            except BaseException as error:
                for _, landed in together:
                    landed.set_exception(error)
                raise
            for _, landed in together:
                landed.set_result(None)
    mine[1].result()


def insert_unless(lake: Lake, contract: Contract, rows: pl.DataFrame, unless: str) -> int:
    """Insert each row unless some row of the table meets `unless`, SQL over `old` and `new`; returns how many were.

    The table's log puts racing merges in order: one that lost is made again against what the winner wrote, so of rows
    that exclude one another exactly one is inserted. Rows of one call must not exclude one another.
    Raises LakeError where the lake does not take the commit.
    """
    table = lake.ensure(contract)
    require_exact(rows, contract)
    done = _commit(table, contract, lambda: merger_of(table, rows, unless).when_not_matched_insert_all().execute())
    return int(done["num_target_rows_inserted"])


def _commit(table: DeltaTable, contract: Contract, merge: Callable[[], dict[str, int]]) -> dict[str, int]:
    """Merge, and merge again against what a winner wrote; returns the engine's metrics of the merge."""
    with _turn(table.table_uri):
        return commit(
            merge,
            busy=f"the table {contract.table} kept changing while rows were landed; run again",
            failed=f"cannot write the table {contract.table}",
            refused=f"a row breaks a constraint of the table {contract.table}: nothing of the batch landed",
            table=table,
        )


@cache
def _turn(table_uri: str) -> threading.RLock:
    """Make the lock by which threads of a process write a table in turn: a merge that loses a race is made again."""
    return threading.RLock()


def _append_new(table: DeltaTable, contract: Contract, source: pl.DataFrame) -> dict[str, int]:
    """Append the rows whose key is not there, as a merge would; merge where a row that is there may be replaced.

    It reads only keys; a merge takes half as long again for one row, several times as long for many, and as much
    memory. Like the ledger's, the commit comes right after the version that was read, or not at all: then it is made
    again on what the other commit wrote.
    """
    there = _present(table, contract, source)
    if there.height and contract.replaced_when:
        return _merge(table, contract, source)
    new = source.join(there, on=list(contract.key), how="anti", maintain_order="left") if there.height else source
    if new.height:
        write_deltalake(table, new.to_arrow(), mode="append", commit_properties=RIGHT_AFTER)
    return {"num_target_rows_inserted": new.height, "num_target_rows_updated": 0}


def _present(table: DeltaTable, contract: Contract, source: pl.DataFrame) -> pl.DataFrame:
    """Find the keys of the source that the table has."""
    keys = list(contract.key)
    if not table.file_uris():
        return source.select(keys).clear()
    alike = [pl.col(key).is_in(source[key].unique().implode()) for key in keys]  # few pass this, and cheaply
    known = pl.scan_delta(table).filter(*alike).select(keys).collect()
    return known.join(source.select(keys), on=keys, how="semi")


def _merge(table: DeltaTable, contract: Contract, source: pl.DataFrame) -> dict[str, int]:
    merger = merger_of(table, source, dict.fromkeys((*contract.partition_by, *contract.key)))
    if contract.replaced_when:
        merger = merger.when_matched_update_all(predicate=contract.replaced_when)
    return merger.when_not_matched_insert_all().execute()
