"""Lands rows exactly once: merges them into their table by key, by commits that are retried after a conflict."""

import re
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import astuple, dataclass
from functools import cache
from operator import add
from typing import TypeVar

import polars as pl
from deltalake import CommitProperties, DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.table import TableMerger

from evalake.contracts.contract import ALWAYS, Contract
from evalake.contracts.engines.arrow import require_exact
from evalake.core.errors import ContractError, LakeError
from evalake.storage.lake import Lake, short_message

PATIENCE_SECONDS = 120
LONGEST_WAIT_SECONDS = 1.0

# The commit fails unless it directly follows the version that was read
NO_RETRIES = CommitProperties(max_commit_retries=0)

T = TypeVar("T")


def commit(
    change: Callable[[], T], *, busy: str, failed: str, refused: str | None = None, table: DeltaTable | None = None
) -> T:
    """Change a table; after a conflict with another commit, make the change again on the newest version.

    Args:
        change: Makes the change; may be called again.
        busy: The error message after two minutes of conflicts.
        failed: The error message of any other failure; Delta's own message follows it.
        refused: The error message where a constraint refuses a row; None: as any other failure.
        table: The table to update before each retry.

    Returns:
        What the change returns.

    Raises:
        LakeError: The change could not be made.
        ContractError: A constraint of the table refuses a row.
    """
    from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

    # It keeps what it holds until the garbage is collected: neither the change, which has the rows, nor the table
    retrying = Retrying(
        retry=retry_if_exception_type(CommitFailedError),
        wait=wait_random_exponential(multiplier=0.02, max=LONGEST_WAIT_SECONDS),
        stop=stop_after_delay(PATIENCE_SECONDS),
        reraise=True,
    )
    try:
        for attempt in retrying:
            with attempt:
                if table is not None and attempt.retry_state.attempt_number > 1:
                    table.update_incremental()
                return change()
        raise AssertionError("the last attempt raises")
    except CommitFailedError as error:
        raise LakeError(busy) from error
    except (DeltaError, OSError, pl.exceptions.PolarsError) as error:
        if refused is not None and ("failed validation check" in str(error) or "constraint" in str(error).lower()):
            # Delta's error quotes the refused rows, which may hold secrets
            raise ContractError(refused) from None
        raise LakeError(f"{failed}: {short_message(error)}") from error


def begin_merge(
    table: DeltaTable, rows: pl.DataFrame, on: Iterable[str] | str, properties: CommitProperties | None = None
) -> TableMerger:
    """Begin a merge of rows (`new`) into a table (`old`). `on` names columns to match, or is a SQL condition."""
    return table.merge(
        rows.to_arrow(),
        predicate=on if isinstance(on, str) else " AND ".join(f"old.{name} = new.{name}" for name in on),
        source_alias="new",
        target_alias="old",
        streamed_exec=False,  # so that the keys of the rows prune files
        commit_properties=properties,
    )


# The rows that `land_together` has yet to land, by lake and table
_queue: defaultdict[tuple[str, str], list[tuple[pl.DataFrame, Future[None]]]] = defaultdict(list)
_queue_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Landed:
    """How many rows a landing added, replaced (where their contract allows it), and found already present."""

    inserted: int = 0
    replaced: int = 0
    already_present: int = 0

    def __add__(self, other: "Landed") -> "Landed":
        return Landed(*map(add, astuple(self), astuple(other)))


def land(lake: Lake, contract: Contract, rows: pl.DataFrame, *, require: Callable[[], None] = lambda: None) -> Landed:
    """Merge `rows` into the contract's table by its key; a key that is present stays, unless its contract replaces it.

    The first of several rows with one key counts. `require` may refuse by an exception: it is called before each try,
    after the version was read that a commit must follow. Raises SchemaMismatchError where the frame's columns differ
    from the contract's, ContractError where a constraint refuses a row, LakeError where the commit fails.
    """
    require_exact(rows, contract)
    source = rows.unique(subset=list(contract.key), keep="first", maintain_order=True)
    if source.is_empty():
        return Landed()
    table = lake.ensure(contract)
    write = _merge if contract.replaced_when == ALWAYS else _append_new

    def try_once() -> dict[str, int]:
        require()
        return write(table, contract, source)

    done = _commit(table, contract, try_once)
    inserted, replaced = int(done["num_target_rows_inserted"]), int(done["num_target_rows_updated"])
    return Landed(inserted, replaced, source.height - inserted - replaced)


def land_together(lake: Lake, contract: Contract, rows: pl.DataFrame) -> None:
    """Land rows as `land` does, in one commit with the waiting rows of other threads.

    Raises as `land` does; a refused row fails all rows of its commit.
    """
    require_exact(rows, contract)
    place = lake.address, contract.table
    with _queue_lock:
        _queue[place].append(mine := (rows, Future[None]()))
    with _table_lock(lake.ensure(contract).table_uri):
        if not mine[1].done():
            with _queue_lock:
                together = _queue.pop(place)
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
    """Insert each row unless a row of the table meets `unless`, SQL over `old` and `new`; returns the number inserted.

    The log orders concurrent merges, and a merge retries after a conflict: of rows that exclude one another exactly
    one is inserted. Rows of one call must not exclude one another. Raises LakeError where the commit fails.
    """
    table = lake.ensure(contract)
    require_exact(rows, contract)
    done = _commit(table, contract, lambda: begin_merge(table, rows, unless).when_not_matched_insert_all().execute())
    return int(done["num_target_rows_inserted"])


def _commit(table: DeltaTable, contract: Contract, merge: Callable[[], dict[str, int]]) -> dict[str, int]:
    """Commit a merge with retries; returns Delta's metrics of it."""
    with _table_lock(table.table_uri):
        return commit(
            merge,
            busy=f"the table {contract.table} kept changing while rows were landed; run again",
            failed=f"cannot write the table {contract.table}",
            refused=f"a row breaks a constraint of the table {contract.table}: no row of the batch landed",
            table=table,
        )


@cache
def _table_lock(table_uri: str) -> threading.RLock:
    """Make the lock by which the threads of a process write a table in turn, without conflicts."""
    return threading.RLock()


def _append_new(table: DeltaTable, contract: Contract, source: pl.DataFrame) -> dict[str, int]:
    """Append the rows whose key is absent; merge where a present row is replaced.

    Reading keys alone takes a fraction of a merge's time and memory, which grow with the table. The commit fails unless
    it directly follows the version that was read.
    """
    keys, condition = list(contract.key), _condition(contract.replaced_when)
    there = _present(table, contract, source, condition)
    new = source.join(there, on=keys, how="anti", maintain_order="left") if there.height else source
    if there.height and condition is not None:
        named = source.select(*keys, *_columns(condition, "new"))
        replaced = there.join(named, on=keys).filter(condition)
        if replaced.height:
            ours = source.join(replaced, on=keys, how="semi", maintain_order="left")
            return _merge(table, contract, pl.concat([ours, new]))
    if new.height:
        write_deltalake(table, new.to_arrow(), mode="append", commit_properties=NO_RETRIES)
    return {"num_target_rows_inserted": new.height, "num_target_rows_updated": 0}


def _condition(sql: str | None) -> pl.Expr | None:
    """Read a contract's `replaced_when` as a condition of columns like `old.state`; always true where Polars cannot."""
    try:
        return None if sql is None else pl.sql_expr(re.sub(r"\b(old|new)\.(\w+)", r'"\1.\2"', sql))
    except pl.exceptions.PolarsError:
        return pl.lit(True)


def _columns(condition: pl.Expr, side: str) -> list[pl.Expr]:
    """Select the columns that a condition reads of the old or the new rows, by its names."""
    names = dict.fromkeys(name for name in condition.meta.root_names() if name.startswith(f"{side}."))
    return [pl.col(name.removeprefix(f"{side}.")).alias(name) for name in names]


def _present(
    table: DeltaTable, contract: Contract, source: pl.DataFrame, condition: pl.Expr | None = None
) -> pl.DataFrame:
    """Find the source's keys that the table has, with the columns that a condition reads of their rows."""
    keys = list(contract.key)
    if not table.file_uris():
        return source.select(keys).clear()
    similar = [pl.col(key).is_in(source[key].unique().implode()) for key in keys]
    read = [] if condition is None else _columns(condition, "old")
    known = pl.scan_delta(table).filter(*similar).select(*keys, *read).collect()
    return known.join(source.select(keys), on=keys, how="semi")


def _merge(table: DeltaTable, contract: Contract, source: pl.DataFrame) -> dict[str, int]:
    merger = begin_merge(table, source, dict.fromkeys((*contract.partition_by, *contract.key)))
    if contract.replaced_when:
        merger = merger.when_matched_update_all(predicate=contract.replaced_when)
    return merger.when_not_matched_insert_all().execute()
