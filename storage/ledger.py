"""The call ledger: an append-only log of answered calls, in which the first committed reply of a key is the reply.

Every row carries the version of the commit that brought it, so "first" is decided by the log itself and stays
decided, through compaction too. For that the appends of all writers are put in a row: a writer stamps its rows with
the next version, and stamps them again where another took that version first.
"""

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import polars as pl
from deltalake import CommitProperties, DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError

from contracts.compile.arrow import conform
from contracts.contract import Row
from contracts.tables import CALLS
from core.errors import EvalakeError
from storage import compaction
from storage.commit import commit
from storage.lake import FILE, Lake, first_words

COMPACT_EVERY = 64  # commits between two compactions by a writer
# Bytes; files larger than this are left alone, which bounds what a compaction rewrites. It holds all of that unpacked,
# and requests that share a prompt of pages pack a hundredfold.
COMPACT_TARGET = 2**20
KEY = ["prompt_hash", "replicate"]
LARGEST_REPLICATE = 2**31 - 1  # that an index holds

logger = logging.getLogger("evalake.ledger")

_HASH = pl.col("prompt_hash").hash().alias("hash")

Key = tuple[str, int]  # prompt hash, replicate


def append(lake: Lake, rows: Sequence[Row], table: DeltaTable | None = None) -> int:
    """Append replies (rows of CALLS without `ledger_version`) in one commit and return its version.

    Of several rows of one key the first is taken, so that no two rows of a key share a version. `table` is the ledger
    where the caller, and nobody else, has it open: opening it takes the longer, the more commits there are.
    """
    table = lake.ensure(CALLS) if table is None else table
    fresh = {(row["prompt_hash"], row["replicate"]): row for row in reversed(rows)}

    def append_next() -> int:
        table.update_incremental()
        version = table.version() + 1
        frame = conform([{**row, "ledger_version": version} for row in reversed(fresh.values())], CALLS)
        write_deltalake(
            table, frame.to_arrow(), mode="append", commit_properties=CommitProperties(max_commit_retries=0)
        )
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
    """Join the small files of the ledger. Never fails a run: a lost race is as good, and what hinders it is logged."""
    try:
        compaction.compact(lake.open(CALLS), COMPACT_TARGET)
    except CommitFailedError:
        return
    except (EvalakeError, DeltaError, OSError) as error:
        logger.warning("the ledger of the lake %s was not compacted: %s", lake.uri, first_words(error))


def replies(frame: pl.LazyFrame, run_id: str | None = None) -> pl.LazyFrame:
    """Of rows of the ledger, the earliest committed of each key; or that which a run bought, where it bought one."""
    order = ["ledger_version"] if run_id is None else [pl.col("run_id") != run_id, "ledger_version"]
    return frame.sort(order).unique(subset=KEY, keep="first", maintain_order=True)


@dataclass(frozen=True, slots=True)
class ReplyLengths:
    """How long the replies of a model are, in output tokens, of those that tell it."""

    replies: int
    mean: float
    longest: int


def reply_lengths(lake: Lake) -> dict[str, ReplyLengths]:
    """How long the replies of each model in the ledger are."""
    tokens = pl.col("output_tokens")
    known = lake.frame(CALLS).filter(tokens.is_not_null()).group_by("model")
    usage = known.agg(pl.len(), tokens.mean().alias("mean"), tokens.max().alias("max")).collect()
    return {model: ReplyLengths(replies, mean, longest) for model, replies, mean, longest in usage.iter_rows()}


@dataclass(frozen=True)
class LedgerIndex:
    """Which keys the ledger held at one version, and in which of its files: twelve bytes a row in memory.

    `marks` (uint64, sorted) hold the number of a row in their low bits, as many as `row_bits` has, and in the others
    those of a hash of its prompt hash, the same within one process. Two prompt hashes that share them may be taken for
    each other here, never in `fetch`, which compares them whole. `replicates` are by row number, `ends` by file.
    """

    lake: Lake
    files: tuple[str, ...]
    ends: np.ndarray[Any, np.dtype[np.int64]]  # the number of the first row after each file
    replicates: np.ndarray[Any, np.dtype[np.int32]]
    marks: np.ndarray[Any, np.dtype[np.uint64]]
    row_bits: np.uint64

    @classmethod
    def read(cls, lake: Lake, known: Collection[str] = ()) -> "LedgerIndex":
        """One scan of the key columns of the newest version, but for the files that are `known` to the caller."""
        files = sorted(set(lake.ensure(CALLS).file_uris()) - set(known))
        columns = _HASH, pl.col("replicate").cast(pl.Int32), pl.col(FILE)
        keys = lake.frame_of_files(CALLS, files).select(columns).collect()
        runs = keys[FILE].rle().struct  # the rows come file by file
        row_bits = np.uint64((1 << keys.height.bit_length()) - 1)
        marks = np.sort((keys["hash"].to_numpy() & ~row_bits) | np.arange(keys.height, dtype=np.uint64))
        ends = np.cumsum(runs.field("len").to_numpy(), dtype=np.int64)
        return cls(lake, tuple(runs.field("value")), ends, keys["replicate"].to_numpy(), marks, row_bits)

    def fetch(self, keys: Sequence[Key], run_id: str | None = None) -> dict[Key, Row]:
        """Fetch the replies to `keys` as rows of CALLS without their requests; keys without a reply are left out.

        Args:
            keys: What was asked.
            run_id: The run whose own reply is taken where it bought one; otherwise it is the earliest committed.
        """
        places = self._places(keys)
        if not places.size:
            return {}
        files = [self.files[number] for number in np.unique(np.searchsorted(self.ends, places, "right"))]
        hashes = pl.Series([prompt_hash for prompt_hash, _ in keys]).unique().implode()
        asked = self.lake.frame_of_files(CALLS, files).filter(pl.col("prompt_hash").is_in(hashes)).drop("request", FILE)
        wanted = set(keys)
        return {
            key: row
            for row in replies(asked, run_id).collect().iter_rows(named=True)
            if (key := (row["prompt_hash"], row["replicate"])) in wanted
        }

    def known(self, keys: Sequence[Key]) -> bool:
        """Whether any of the keys may be in the ledger."""
        return bool(self._places(keys).size)

    def _places(self, keys: Sequence[Key]) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The numbers of the rows that may have the keys."""
        wanted = pl.DataFrame(keys, schema={"prompt_hash": pl.String, "replicate": pl.Int32}, orient="row")
        hashes = wanted.select(_HASH).to_series().to_numpy()
        low = np.searchsorted(self.marks, hashes & ~self.row_bits, "left")
        counts = np.searchsorted(self.marks, hashes | self.row_bits, "right") - low
        starts = np.repeat(low - np.cumsum(counts) + counts, counts)
        places = (self.marks[starts + np.arange(counts.sum())] & self.row_bits).astype(np.int64)
        kept = self.replicates[places] == np.repeat(wanted["replicate"].to_numpy(), counts)
        return np.asarray(places[kept], dtype=np.int64)


@lru_cache(maxsize=4)
def shared_index(lake: Lake, ledger_id: str, version: int) -> LedgerIndex:
    """The index that all batches of a process share; id and version name the state of the ledger it was read for."""
    return LedgerIndex.read(lake)


def newest_index(lake: Lake) -> tuple[str, int, LedgerIndex]:
    """The ledger's id and newest version, and the shared index of it."""
    ledger = lake.ensure(CALLS)
    ledger_id, version = str(ledger.metadata().id), ledger.version()
    return ledger_id, version, shared_index(lake, ledger_id, version)
