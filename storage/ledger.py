"""The call ledger: an append-only log of answered calls, in which the first committed reply of a key is the reply.

A reply that was withdrawn stays there, and answers no longer: the next one to the same call has a higher revision.

Every row carries the version of the commit that brought it, so "first" is decided by the log itself and stays
decided, through compaction too. For that the appends of all writers are put in a row: a writer stamps its rows with
the next version, and stamps them again where another took that version first.
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

import numpy as np
import polars as pl
from deltalake import DeltaTable, WriterProperties, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError

from evalake.contracts.contract import Row
from evalake.contracts.engines.arrow import conform, polars_schema
from evalake.contracts.tables import CALLS, WITHDRAWN_CALLS
from evalake.contracts.tables.ledger import CALL_KEY
from evalake.contracts.tables.runs import JUDGE_CALL, SUBJECT_CALL
from evalake.core.errors import EvalakeError, LakeError
from evalake.storage.commit import RIGHT_AFTER, commit
from evalake.storage.lake import FILE, Lake, first_words

# Compaction: small files of a table are joined, by one process at a time.


_LATEST = "evalake.compaction"


def join_files(
    table: DeltaTable, target_size: int | None = None, writer_properties: WriterProperties | None = None
) -> None:
    """Join the small files of a table that was just opened. Raises CommitFailedError where another was quicker.

    The engine checks whether a compaction conflicts with any other change, but not with another compaction: two that
    began on the same files would both keep their rows. So each begins with a change of the table's properties, and the
    engine refuses commits that conflict with such a change.
    """
    if len(table.file_uris()) > 1:
        table.alter.set_table_properties({_LATEST: uuid4().hex}, raise_if_not_exists=False)
        table.optimize.compact(target_size=target_size, writer_properties=writer_properties)


COMPACT_EVERY = 64  # commits between two compactions by a writer
# Bytes; files larger than this are left alone, which bounds what a compaction rewrites. It holds all of that unpacked,
# and requests that share a prompt of pages pack a hundredfold.
COMPACT_TARGET = 2**20
# Few rows to a row group, so that fetching a reply reads no more than these of its file.
COMPACTED = WriterProperties(compression="SNAPPY", max_row_group_size=4096)
KEY = list(CALL_KEY)
_KEY_TYPES = {name: polars_schema(CALLS)[name] for name in KEY}
LARGEST_REPLICATE = 2**31 - 1  # that the ledger counts to

logger = logging.getLogger("evalake.ledger")


class Key(NamedTuple):
    """What tells a call apart: CALL_KEY of its row."""

    prompt_hash: str
    replicate: int
    endpoint: str


def key_of(row: Row, columns: Mapping[str, str] = SUBJECT_CALL) -> Key:
    """Read the key of a call: of its row, or of an item or a result row by `columns`."""
    return Key(*(row[columns[name]] for name in CALL_KEY))


def calls_of(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Select the keys of the first calls, to subjects and to judges, that items or result rows name."""
    asked = [
        rows.select(pl.col(column).alias(name) for name, column in columns.items())
        for columns in (SUBJECT_CALL, JUDGE_CALL)
    ]
    return pl.concat(asked).drop_nulls().unique()


def append(lake: Lake, rows: Sequence[Row], table: DeltaTable | None = None) -> int:
    """Append replies (rows of CALLS without `ledger_version`) in one commit and return its version.

    Of several rows of one key the first is taken, so that no two rows of a key share a version. `table` is the ledger
    where the caller, and nobody else, has it open: opening it takes longer with every commit.
    """
    table = lake.ensure(CALLS) if table is None else table
    fresh = {key_of(row): row for row in reversed(rows)}

    def append_next() -> int:
        table.update_incremental()
        version = table.version() + 1
        frame = conform([{**row, "ledger_version": version} for row in reversed(fresh.values())], CALLS)
        write_deltalake(table, frame.to_arrow(), mode="append", commit_properties=RIGHT_AFTER)
        return version

    return commit(
        append_next,
        busy=f"the ledger of the lake {lake.uri} is too busy to take replies; run again",
        failed=f"cannot append to the ledger of the lake {lake.uri}",
    )


def priced(lake: Lake, run_id: str) -> dict[str, Any]:
    """Add up the known prices of the replies that a run bought (cost_usd_known, calls_unpriced, calls_bought)."""
    bought = lake.frame(CALLS).filter(pl.col("run_id") == run_id)
    price = pl.col("cost_usd")
    sums = {"cost_usd_known": price.sum(), "calls_unpriced": price.null_count(), "calls_bought": pl.len()}
    return bought.select(**sums).collect().row(0, named=True)


def compact(lake: Lake) -> None:
    """Join the small files of the ledger. Never fails a run: a lost race is ignored, any other failure logged."""
    try:
        join_files(lake.open(CALLS), COMPACT_TARGET, COMPACTED)
    except CommitFailedError:
        return
    except (EvalakeError, DeltaError, OSError) as error:
        logger.warning("the ledger of the lake %s was not compacted: %s", lake.uri, first_words(error))


def replies(frame: pl.LazyFrame, run_id: str | None = None) -> pl.LazyFrame:
    """Select of each key's highest revision the earliest committed row; or the one that a run bought, if it did."""
    revision, own = -pl.col("reply_revision"), [] if run_id is None else [pl.col("run_id") != run_id]
    return frame.sort(revision, *own, "ledger_version").unique(subset=KEY, keep="first", maintain_order=True)


@dataclass(frozen=True, slots=True)
class ReplyLengths:
    """The lengths of a model's replies, in output tokens, over those whose length is known."""

    replies: int
    mean: float
    longest: int


def reply_lengths(lake: Lake) -> dict[str, ReplyLengths]:
    """Compute how long the replies of each model in the ledger are."""
    tokens = pl.col("output_tokens")
    known = lake.frame(CALLS).filter(tokens.is_not_null()).group_by("model")
    usage = known.agg(pl.len(), tokens.mean().alias("mean"), tokens.max().alias("max")).collect()
    return {model: ReplyLengths(replies, mean, longest) for model, replies, mean, longest in usage.iter_rows()}


Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class Marks:
    """A hash of every key in some files, sorted, each beside the number of its file."""

    hashes: Array
    files: Array

    @classmethod
    def scan(cls, lake: Lake, files: Sequence[str], first: int) -> "Marks":
        """Scan the key columns of files, which are numbered from `first`."""
        number = pl.col(FILE).cast(pl.Enum(files)).to_physical().cast(pl.UInt32) + first
        rows = lake.frame_of_files(CALLS, files).select(hash=_hash(), file=number) if files else None
        return cls.of(*((np.empty(0, np.uint64), np.empty(0, np.uint32)) if rows is None else _arrays(rows)))

    @classmethod
    def of(cls, hashes: Array, files: Array) -> "Marks":
        """Sort hashes with their files."""
        order = np.argsort(hashes)
        return cls(hashes[order], files[order])

    def joined(self, later: "Marks") -> "Marks":
        """Join the marks of further files to these."""
        return Marks.of(np.concatenate([self.hashes, later.hashes]), np.concatenate([self.files, later.files]))

    def files_with(self, hashes: Array) -> set[int]:
        """Find the files with a key of one of these hashes."""
        starts, ends = (np.searchsorted(self.hashes, hashes, side) for side in ("left", "right"))
        found = (self.files[start:end] for start, end in zip(starts, ends, strict=True) if start < end)
        return {int(file) for files in found for file in files}


def _hash() -> pl.Expr:
    """Build the hash of a row's key."""
    return reduce(xor, (pl.col(name).cast(kind).hash(seed) for seed, (name, kind) in enumerate(_KEY_TYPES.items())))


def _hashes(keys: Sequence[Key]) -> Array:
    return pl.DataFrame(keys, schema=_KEY_TYPES, orient="row").select(_hash()).to_series().unique().to_numpy()


def _arrays(rows: pl.LazyFrame) -> tuple[Array, Array]:
    frame = rows.collect(engine="streaming")
    return frame["hash"].to_numpy(), frame["file"].to_numpy()


@dataclass(frozen=True)
class LedgerIndex:
    """Which keys some files of the ledger hold, and in which file.

    Two keys may be mistaken for each other here, but never in `fetch`, which compares them whole.
    """

    lake: Lake
    files: tuple[str, ...]
    withdrawn: Mapping[Key, int]  # the highest revision of a call that answers no longer
    first: Marks  # of the files that the index was read with
    later: Marks  # of those that came since: few, so that joining more to them is cheap

    @classmethod
    def read(cls, lake: Lake) -> "LedgerIndex":
        """Index the newest version."""
        files = sorted(lake.ensure(CALLS).file_uris())
        return cls(lake, tuple(files), withdrawn(lake), Marks.scan(lake, files, 0), Marks.scan(lake, (), 0))

    def extended(self, table: DeltaTable) -> "LedgerIndex":
        """Index the files that came to the ledger since, too; `table` is its newest version.

        Files that were compacted meanwhile stay readable.
        """
        if not (files := sorted(set(table.file_uris()) - set(self.files))):
            return self
        later = self.later.joined(Marks.scan(self.lake, files, len(self.files)))
        return replace(self, files=(*self.files, *files), later=later)

    def fetch(self, keys: Sequence[Key], run_id: str | None = None) -> dict[Key, Row]:
        """Fetch the replies to `keys` as rows of CALLS without their requests; keys without a reply are left out.

        Args:
            keys: The keys of the calls.
            run_id: The run whose own reply is taken where it bought one; otherwise it is the earliest committed.
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

    def came_later(self, keys: Sequence[Key]) -> bool:
        """Tell whether any of the keys may have come to the ledger since the index was read."""
        return bool(self.later.files_with(_hashes(keys)))

    def next_revision(self, key: Key) -> int:
        """Tell the revision of the next reply to a call."""
        return self.withdrawn.get(key, -1) + 1

    def _files_with(self, keys: Sequence[Key]) -> set[int]:
        hashes = _hashes(keys)
        return self.first.files_with(hashes) | self.later.files_with(hashes)


def superseded(calls: pl.LazyFrame) -> pl.LazyFrame:
    """Select key, revision and version of the rows that lost a race for the reply to their call."""
    version, of_call = pl.col("ledger_version"), [*KEY, "reply_revision"]
    return calls.select(*of_call, version).filter(version > version.min().over(of_call))


def withdrawn(lake: Lake) -> dict[Key, int]:
    """Read the highest revision of each call's replies that was withdrawn."""
    rows = lake.frame(WITHDRAWN_CALLS).group_by(KEY).agg(pl.col("reply_revision").max())
    return {Key(*key): revision for *key, revision in rows.collect().iter_rows()}


class _Shared:
    """The index of a ledger that all batches of a process share, each of which adds the files that came since."""

    def __init__(self, index: LedgerIndex) -> None:
        self.index = index
        self.extending = threading.Lock()


@lru_cache(maxsize=4)
def _shared(lake: Lake, ledger_id: str, version: int) -> _Shared:
    """Read the shared index; id and version name the ledger's state that a run was planned for."""
    return _Shared(LedgerIndex.read(lake))


def index_since(lake: Lake, ledger_id: str, version: int) -> LedgerIndex:
    """Take the shared index, with what came to the ledger, and what was withdrawn, until now."""
    shared = _shared(lake, ledger_id, version)
    with shared.extending:
        shared.index = shared.index.extended(lake.ensure(CALLS))
        return replace(shared.index, withdrawn=withdrawn(lake))


def newest_index(lake: Lake) -> tuple[str, int, LedgerIndex]:
    """Look up the ledger's id and newest version, and the shared index of it."""
    ledger = lake.ensure(CALLS)
    ledger_id, version = str(ledger.metadata().id), ledger.version()
    return ledger_id, version, replace(_shared(lake, ledger_id, version).index, withdrawn=withdrawn(lake))


# The ledger's writer: replies are committed as they come, a second after they arrived at the latest.


COMMIT_AFTER_SECONDS = 0.5  # how long the oldest reply waits; with the commit itself it stays under a second
COMMIT_AFTER_ROWS = 300


class LedgerWriter(AbstractContextManager["LedgerWriter"]):
    """Takes replies from any thread and commits them in order, in few commits, from a thread of its own.

    Once a commit has failed, every further call raises that error: no reply is taken that cannot be kept.
    """

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._table: DeltaTable | None = None  # opened once: the longer its log, the longer that takes
        self._changed = threading.Condition()
        self._waiting: list[Row] = []
        self._oldest = 0.0  # monotonic time at which the first waiting row came
        self._taken = self._committed = self._commits = 0
        self._urgent = self._closed = False
        self._error: EvalakeError | None = None
        self._thread = threading.Thread(target=self._work, name="ledger-writer", daemon=True)
        self._thread.start()

    @property
    def failed(self) -> bool:
        """Whether a commit has failed, after which nothing more is taken."""
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
        """Wait until everything that was handed over before is committed."""
        with self._changed:
            target = self._taken
            self._urgent = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._committed >= target or self._error is not None)
            self._raise_if_failed()

    def close(self) -> None:
        """Commit what waits and end the thread."""
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
                return
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
        except BaseException as error:  # noqa: BLE001 - whatever it is, a panic too, it is raised to every producer
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
