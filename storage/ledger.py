"""The call ledger: an append-only log of answered calls. The reply to a call is the one that was committed first.

A withdrawn reply stays in the ledger, and the next reply to its call has a higher revision.

Every row carries the version of its commit, so that compaction does not change which reply was first. A writer stamps
its rows with the next version of the table, and stamps them again after a conflict.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from operator import xor
from typing import Any, NamedTuple
from uuid import uuid4

import polars as pl
from deltalake import DeltaTable, WriterProperties, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError

from evalake.contracts.contract import Row
from evalake.contracts.engines.arrow import conform, polars_schema
from evalake.contracts.tables import CALLS, WITHDRAWN_CALLS
from evalake.contracts.tables.ledger import CALL_KEY
from evalake.contracts.tables.runs import JUDGE_CALL, SUBJECT_CALL
from evalake.core.errors import EvalakeError, LakeError
from evalake.storage.lake import FILE, Lake, short_message
from evalake.storage.landing import NO_RETRIES, commit
from evalake.storage.reservations import claims_of

_COMPACTION = "evalake.compaction"


def join_files(
    table: DeltaTable, target_size: int | None = None, writer_properties: WriterProperties | None = None
) -> None:
    """Compact a table that was just opened. Raises CommitFailedError where another process compacts it, too.

    Delta finds no conflict between two compactions, and both would keep the rows of the same files. So each first
    changes a table property, which does conflict.
    """
    if len(table.file_uris()) > 1:
        table.alter.set_table_properties({_COMPACTION: uuid4().hex}, raise_if_not_exists=False)
        table.optimize.compact(target_size=target_size, writer_properties=writer_properties)


COMPACT_EVERY = 64  # commits of a writer
COMPACT_TARGET = 2**20  # bytes; a compaction holds its files unpacked, and shared prompts pack a hundredfold
COMPACTED = WriterProperties(compression="SNAPPY", max_row_group_size=4096)  # a reply is read with its row group
KEY = list(CALL_KEY)
_KEY_TYPES = {name: polars_schema(CALLS)[name] for name in KEY}
LARGEST_REPLICATE = 2**31 - 1

logger = logging.getLogger("evalake.ledger")


class Key(NamedTuple):
    """The identity of a call: the columns CALL_KEY of its row."""

    prompt_hash: str
    replicate: int
    endpoint: str


def key_of(row: Row, columns: Mapping[str, str] = SUBJECT_CALL) -> Key:
    """Read the key of a call from its row, or from an item or result row by `columns`."""
    return Key(*(row[columns[name]] for name in CALL_KEY))


def calls_of(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Select the call keys of subjects and judges from items or result rows."""
    asked = [
        rows.select(pl.col(column).alias(name) for name, column in columns.items())
        for columns in (SUBJECT_CALL, JUDGE_CALL)
    ]
    return pl.concat(asked).drop_nulls().unique()


def append(lake: Lake, rows: Sequence[Row], table: DeltaTable | None = None) -> int:
    """Append replies (rows of CALLS without `ledger_version`) in one commit, and return its version.

    The first row of each key is taken. `table` is the open ledger of a caller that does not share it.
    """
    table = lake.ensure(CALLS) if table is None else table
    fresh = {key_of(row): row for row in reversed(rows)}

    def append_next() -> int:
        table.update_incremental()
        version = table.version() + 1
        frame = conform([{**row, "ledger_version": version} for row in reversed(fresh.values())], CALLS)
        write_deltalake(table, frame.to_arrow(), mode="append", commit_properties=NO_RETRIES)
        return version

    return commit(
        append_next,
        busy=f"the ledger of the lake {lake.uri} is too busy to store replies; run again",
        failed=f"cannot append to the ledger of the lake {lake.uri}",
    )


def priced(lake: Lake, run_id: str) -> dict[str, Any]:
    """Sum up the replies that a run bought: cost_usd_known, calls_unpriced, calls_bought."""
    bought = lake.frame(CALLS).filter(pl.col("run_id") == run_id)
    price = pl.col("cost_usd")
    sums = {"cost_usd_known": price.sum(), "calls_unpriced": price.null_count(), "calls_bought": pl.len()}
    return bought.select(**sums).collect().row(0, named=True)


def compact(lake: Lake) -> None:
    """Compact the ledger. Ignores conflicts and logs other failures, so that no run fails."""
    try:
        join_files(lake.open(CALLS), COMPACT_TARGET, COMPACTED)
    except CommitFailedError:
        return
    except (EvalakeError, DeltaError, OSError) as error:
        logger.warning("the ledger of the lake %s was not compacted: %s", lake.uri, short_message(error))


def replies(frame: pl.LazyFrame, run_id: str | None = None) -> pl.LazyFrame:
    """Select the reply of each key: of its highest revision the row that the run bought, else the first committed."""
    revision, own = -pl.col("reply_revision"), [] if run_id is None else [pl.col("run_id") != run_id]
    return frame.sort(revision, *own, "ledger_version").unique(subset=KEY, keep="first", maintain_order=True)


@dataclass(frozen=True, slots=True)
class ReplyLengths:
    """The lengths of a model's replies in output tokens, where they are known."""

    replies: int
    mean: float
    longest: int


def reply_lengths(lake: Lake) -> dict[str, ReplyLengths]:
    """Compute the reply lengths of each model in the ledger."""
    tokens = pl.col("output_tokens")
    known = lake.frame(CALLS).filter(tokens.is_not_null()).group_by("model")
    usage = known.agg(pl.len(), tokens.mean().alias("mean"), tokens.max().alias("max")).collect()
    return {model: ReplyLengths(replies, mean, longest) for model, replies, mean, longest in usage.iter_rows()}


@dataclass(frozen=True, slots=True)
class Marks:
    """The sorted hashes of all keys in some files, with the number of each key's file."""

    rows: pl.DataFrame

    @classmethod
    def scan(cls, lake: Lake, files: Sequence[str], first: int) -> "Marks":
        """Hash the keys of files, which are numbered from `first`."""
        if not files:
            return cls(pl.DataFrame(schema={"hash": pl.UInt64, "file": pl.UInt32}))
        number = (pl.col(FILE).cast(pl.Enum(files)).to_physical() + first).cast(pl.UInt32)
        rows = lake.frame_of_files(CALLS, files).select(hash=_hash(), file=number)
        return cls(rows.collect(engine="streaming").sort("hash"))

    def joined(self, later: "Marks") -> "Marks":
        """Add the hashes of further files."""
        return Marks(pl.concat([self.rows, later.rows]).sort("hash"))

    def files_with(self, hashes: pl.Series) -> set[int]:
        """Find the files that hold any of the hashes."""
        known, files = self.rows
        starts, ends = known.search_sorted(hashes, "left"), known.search_sorted(hashes, "right")
        found: set[int] = set()
        while (has := starts < ends).any():  # again where several files hold a hash
            starts, ends = starts.filter(has), ends.filter(has)
            found.update(files.gather(starts).unique())
            starts += 1
        return found


def _hash() -> pl.Expr:
    """Build the hash of a key."""
    return reduce(xor, (pl.col(name).cast(kind).hash(seed) for seed, (name, kind) in enumerate(_KEY_TYPES.items())))


def _hashes(keys: Sequence[Key]) -> pl.Series:
    return pl.DataFrame(keys, schema=_KEY_TYPES, orient="row").select(_hash()).to_series().unique()


@dataclass(frozen=True)
class LedgerIndex:
    """An index of the ledger's keys by file. Hashes may collide; `fetch` compares whole keys."""

    lake: Lake
    files: tuple[str, ...]
    withdrawn: Mapping[Key, int]  # the highest withdrawn revision of a call
    first: Marks  # the files when the index was read
    later: Marks  # newer files: few, so that adding more is cheap

    @classmethod
    def read(cls, lake: Lake) -> "LedgerIndex":
        """Index the newest version."""
        opened = lake.pinned_table(CALLS, {})
        files = [] if opened is None else sorted(opened.table.file_uris())
        return cls(lake, tuple(files), withdrawn(lake), Marks.scan(lake, files, 0), Marks.scan(lake, (), 0))

    def extended(self, table: DeltaTable) -> "LedgerIndex":
        """Add the new files of `table`, the ledger's newest version. Compacted files stay readable."""
        if not (files := sorted(set(table.file_uris()) - set(self.files))):
            return self
        later = self.later.joined(Marks.scan(self.lake, files, len(self.files)))
        return replace(self, files=(*self.files, *files), later=later)

    def fetch(self, keys: Sequence[Key], run_id: str | None = None) -> dict[Key, Row]:
        """Fetch the replies to `keys` as rows of CALLS without requests; keys without a reply are left out.

        A reply that `run_id` bought comes before the first committed one.
        """
        if not (files := self._files_with(keys)):
            return {}
        hashes = pl.Series([key.prompt_hash for key in keys]).unique().implode()
        rows = self.lake.frame_of_files(CALLS, [self.files[file] for file in sorted(files)])
        asked = rows.filter(pl.col("prompt_hash").is_in(hashes)).drop("request", FILE)
        wanted = set(keys)
        return {
            key: row
            for row in replies(asked, run_id).collect().iter_rows(named=True)
            if (key := key_of(row)) in wanted and row["reply_revision"] >= self.next_revision(key)
        }

    def known(self, keys: Sequence[Key]) -> bool:
        """Tell whether any of the keys may be in the ledger."""
        return bool(self._files_with(keys))

    def next_revision(self, key: Key) -> int:
        """Tell the revision of the next reply to a call."""
        return self.withdrawn.get(key, -1) + 1

    def _files_with(self, keys: Sequence[Key]) -> set[int]:
        hashes = _hashes(keys)
        return self.first.files_with(hashes) | self.later.files_with(hashes)


DISTINCT = "evalake.distinct"  # a property of the ledger: the version up to which no key has two rows


def distinct_until(table: DeltaTable) -> int | None:
    """Read up to which version of the ledger no key has two rows; None where it is not known."""
    text = table.metadata().configuration.get(DISTINCT, "")
    return int(text) if text.isdecimal() else None


def superseded(calls: pl.LazyFrame) -> pl.LazyFrame:
    """Select key, revision and version of the rows that are not the first reply to their call."""
    version, of_call = pl.col("ledger_version"), [*KEY, "reply_revision"]
    return calls.select(*of_call, version).filter(version > version.min().over(of_call))


def withdrawn(lake: Lake) -> dict[Key, int]:
    """Read the highest withdrawn revision of each call."""
    rows = lake.frame(WITHDRAWN_CALLS).group_by(KEY).agg(pl.col("reply_revision").max())
    return {Key(*key): revision for *key, revision in rows.collect().iter_rows()}


class _SharedIndex:
    """The index of a ledger that all batches of a process share and update."""

    def __init__(self, index: LedgerIndex) -> None:
        self.index = index
        self.lock = threading.Lock()


@lru_cache(maxsize=4)
def _shared_index(lake: Lake, ledger_id: str, version: int) -> _SharedIndex:
    """Read the shared index; id and version name the state of the ledger for which a run was planned."""
    return _SharedIndex(LedgerIndex.read(lake))


def index_since(lake: Lake, ledger_id: str, version: int) -> LedgerIndex:
    """Update the shared index with new files and withdrawals, and return it."""
    shared = _shared_index(lake, ledger_id, version)
    with shared.lock:
        shared.index = shared.index.extended(lake.ensure(CALLS))
        return replace(shared.index, withdrawn=withdrawn(lake))


def newest_index(lake: Lake, *, only_reads: bool = False) -> tuple[str, int, LedgerIndex]:
    """Return the ledger's id, its newest version, and the shared index of that version.

    Unless the caller `only_reads`, a ledger that does not exist is created, and one that is not writable refused.
    """
    if only_reads and not lake.exists(CALLS):
        return "", 0, LedgerIndex.read(lake)
    ledger = lake.open(CALLS) if only_reads else lake.ensure(CALLS)
    ledger_id, version = str(ledger.metadata().id), ledger.version()
    return ledger_id, version, replace(_shared_index(lake, ledger_id, version).index, withdrawn=withdrawn(lake))


COMMIT_AFTER_SECONDS = 0.5  # how long the oldest reply waits; with the commit, it stays under a second
COMMIT_AFTER_ROWS = 300


class LedgerWriter(AbstractContextManager["LedgerWriter"]):
    """Takes replies from any thread, and commits them in order on its own thread, within a second.

    A commit ends this process's claims on its calls. After a failed commit, every call raises its error, so that no
    reply is accepted and lost.
    """

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self.claims = claims_of(lake.address)
        self._table: DeltaTable | None = None
        self._changed = threading.Condition()
        self._waiting: list[Row] = []
        self._oldest = 0.0  # monotonic time of the first waiting row
        self._taken = self._committed = self._commits = 0
        self._urgent = self._closed = False
        self._error: EvalakeError | None = None
        self._thread = threading.Thread(target=self._work, name="ledger-writer", daemon=True)
        self._thread.start()

    @property
    def failed(self) -> bool:
        """Whether a commit has failed."""
        return self._error is not None

    def put(self, row: Row) -> None:
        """Hand over one reply."""
        with self._changed:
            self._raise_if_failed()
            if not self._waiting:
                self._oldest = time.monotonic()
            self._waiting.append(row)
            self._taken += 1
            if len(self._waiting) in (1, COMMIT_AFTER_ROWS):
                self._changed.notify_all()

    def flush(self) -> None:
        """Wait until all replies so far are committed."""
        with self._changed:
            target = self._taken
            self._urgent = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._committed >= target or self._error is not None)
            self._raise_if_failed()

    def close(self) -> None:
        """Commit the waiting replies and end the thread."""
        with self._changed:
            self._closed = self._urgent = True
            self._changed.notify_all()
        self._thread.join()
        self._raise_if_failed()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _raise_if_failed(self) -> None:
        if self._error is not None:
            raise self._error

    def _work(self) -> None:
        while (rows := self._next()) is not None:
            if not self._try(lambda rows=rows: self._commit(rows)):  # type: ignore[misc]
                self.claims.release(map(key_of, [*rows, *self._waiting]))
                return
            self.claims.release(map(key_of, rows))
            with self._changed:
                self._committed += len(rows)
                self._commits += 1
                self._changed.notify_all()
            if self._commits % COMPACT_EVERY == 0 and not self._try(lambda: compact(self._lake)):
                return

    def _commit(self, rows: list[Row]) -> None:
        if self._table is None:
            self._table = self._lake.ensure(CALLS)
        append(self._lake, rows, self._table)

    def _try(self, step: Callable[[], object]) -> bool:
        try:
            step()
        except BaseException as error:  # noqa: BLE001 - every error, even a panic, is raised to every caller
            failure = error if isinstance(error, EvalakeError) else LakeError(f"the ledger failed: {error}")
            with self._changed:
                self._error = failure
                self._changed.notify_all()
            return False
        return True

    def _next(self) -> list[Row] | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            if not self._waiting:
                return None
            due = self._oldest + COMMIT_AFTER_SECONDS
            while not self._urgent and len(self._waiting) < COMMIT_AFTER_ROWS:
                if (left := due - time.monotonic()) <= 0:
                    break
                self._changed.wait(left)
            rows, self._waiting = self._waiting, []
            self._urgent = self._closed
            return rows
