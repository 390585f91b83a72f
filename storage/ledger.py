"""The call ledger: an append-only log of answered calls, in which the first committed reply of a key is the reply.

Every row carries the version of the commit that brought it, so "first" is decided by the log itself and stays
decided, through compaction too. For that the appends of all writers are put in a row: a writer stamps its rows with
the next version, and stamps them again where another took that version first.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import polars as pl
from deltalake import DeltaTable, WriterProperties, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError

from contracts.compile.arrow import conform
from contracts.contract import Row
from contracts.tables import CALLS
from core.errors import EvalakeError
from storage import compaction
from storage.commit import RIGHT_AFTER, commit
from storage.key_index.keys import Keys, Part, keys_of
from storage.key_index.segment import MARK, marks_of
from storage.lake import FILE, Lake, first_words

COMPACT_EVERY = 64  # commits between two compactions by a writer
# Bytes; files larger than this are left alone, which bounds what a compaction rewrites. It holds all of that unpacked,
# and requests that share a prompt of pages pack a hundredfold.
COMPACT_TARGET = 2**20
# Few rows to a row group, so that fetching a reply reads no more than these of its file.
COMPACTED = WriterProperties(compression="SNAPPY", max_row_group_size=4096)
KEY = ["prompt_hash", "replicate"]
LARGEST_REPLICATE = 2**31 - 1  # that the ledger counts to

logger = logging.getLogger("evalake.ledger")

Key = tuple[str, int]  # prompt hash, replicate


def append(lake: Lake, rows: Sequence[Row], table: DeltaTable | None = None) -> int:
    """Append replies (rows of CALLS without `ledger_version`) in one commit and return its version.

    Of several rows of one key the first is taken, so that no two rows of a key share a version. `table` is the ledger
    where the caller, and nobody else, has it open: opening it takes longer with every commit.
    """
    table = lake.ensure(CALLS) if table is None else table
    fresh = {(row["prompt_hash"], row["replicate"]): row for row in reversed(rows)}

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
        compaction.compact(lake.open(CALLS), COMPACT_TARGET, COMPACTED)
    except CommitFailedError:
        return
    except (EvalakeError, DeltaError, OSError) as error:
        logger.warning("the ledger of the lake %s was not compacted: %s", lake.uri, first_words(error))


def replies(frame: pl.LazyFrame, run_id: str | None = None) -> pl.LazyFrame:
    """Select the ledger's earliest committed row of each key; or the one that a run bought, where it bought one."""
    order = ["ledger_version"] if run_id is None else [pl.col("run_id") != run_id, "ledger_version"]
    return frame.sort(order).unique(subset=KEY, keep="first", maintain_order=True)


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


@dataclass(frozen=True)
class LedgerIndex:
    """Which keys some files of the ledger hold, and where (`storage/key_index`).

    Two keys may be mistaken for each other here, but never in `fetch`, which compares them whole.
    """

    lake: Lake
    files: tuple[str, ...]
    keys: Keys

    @classmethod
    def read(cls, lake: Lake) -> "LedgerIndex":
        """Index the newest version."""
        return cls.of(lake, lake.ensure(CALLS))

    @classmethod
    def of(cls, lake: Lake, table: DeltaTable) -> "LedgerIndex":
        """Index a ledger that was just opened."""
        files = sorted(table.file_uris())
        return cls(lake, tuple(files), keys_of(lake, table, files, keep=True))

    def extended(self, table: DeltaTable) -> "LedgerIndex":
        """Index the files that came to the ledger since, too; `table` is its newest version.

        Files that were compacted meanwhile stay readable.
        """
        if not (files := sorted(set(table.file_uris()) - set(self.files))):
            return self
        later = keys_of(self.lake, table, files, keep=False)
        return LedgerIndex(self.lake, (*self.files, *files), self.keys.joined(later))

    def fetch(self, keys: Sequence[Key], run_id: str | None = None) -> dict[Key, Row]:
        """Fetch the replies to `keys` as rows of CALLS without their requests; keys without a reply are left out.

        Args:
            keys: The keys of the calls.
            run_id: The run whose own reply is taken where it bought one; otherwise it is the earliest committed.
        """
        places = self.keys.places(_marks(keys))
        if not places:
            return {}
        hashes = pl.Series([prompt_hash for prompt_hash, _ in keys]).unique().implode()
        asked = rows_at(self.lake, places).filter(pl.col("prompt_hash").is_in(hashes)).drop("request")
        wanted = set(keys)
        return {
            key: row
            for row in replies(asked, run_id).collect().iter_rows(named=True)
            if (key := (row["prompt_hash"], row["replicate"])) in wanted
        }

    def known(self, keys: Sequence[Key]) -> bool:
        """Tell whether any of the keys may be in the ledger."""
        return self.keys.has_any(_marks(keys))

    def superseded(self) -> list[tuple[str, int, int]] | None:
        """List the rows that are not the reply of their key (key and version); None where those may be very many."""
        if self.keys.repeated is None:
            return None
        if not (places := self.keys.places(self.keys.repeated)):
            return []
        version = pl.col("ledger_version")
        rows = rows_at(self.lake, places).select(*KEY, version).collect()
        return rows.filter(version > version.min().over(KEY)).rows()


def rows_at(lake: Lake, places: Mapping[str, Part]) -> pl.LazyFrame:
    """Scan the rows of the ledger at some places, with as few other rows of the same files as possible."""
    whole = [file for file, part in places.items() if not part.is_small]
    parts = [
        lake.frame_of_files(CALLS, [file]).slice(part.first, part.end - part.first)
        for file, part in places.items()
        if part.is_small
    ]
    return pl.concat([lake.frame_of_files(CALLS, whole), *parts]).drop(FILE)


def _marks(keys: Sequence[Key]) -> np.ndarray[Any, np.dtype[np.uint64]]:
    wanted = pl.DataFrame(keys, schema={"prompt_hash": pl.String, "replicate": pl.Int64}, orient="row")
    return marks_of(wanted.select(MARK, "replicate"))


@lru_cache(maxsize=4)
def shared_index(lake: Lake, ledger_id: str, version: int) -> LedgerIndex:
    """Read the index that all batches of a process share; id and version name the ledger's state it was read for."""
    return LedgerIndex.read(lake)


def newest_index(lake: Lake) -> tuple[str, int, LedgerIndex]:
    """Look up the ledger's id and newest version, and the shared index of it."""
    ledger = lake.ensure(CALLS)
    ledger_id, version = str(ledger.metadata().id), ledger.version()
    return ledger_id, version, shared_index(lake, ledger_id, version)
