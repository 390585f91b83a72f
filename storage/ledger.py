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
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

from contracts.arrow import conform
from contracts.errors import EvalakeError, LakeError
from contracts.tables import CALLS
from storage.lake import Lake, first_words

COMPACT_EVERY = 64  # commits between two compactions by a writer
# Bytes; files larger than this are left alone, which bounds what a compaction rewrites. It holds all of that unpacked,
# and requests that share a prompt of pages pack a hundredfold.
COMPACT_TARGET = 2**20
KEY = ["prompt_hash", "replicate"]
LARGEST_REPLICATE = 2**31 - 1  # that an index holds

logger = logging.getLogger("evalake.ledger")

_HASH = pl.col("prompt_hash").hash().alias("hash")
_NO_KEYS = {"hash": pl.UInt64, "replicate": pl.Int32, "file": pl.String}

Row = dict[str, Any]
Key = tuple[str, int]  # prompt hash, replicate


def append(lake: Lake, rows: Sequence[Row], table: DeltaTable | None = None) -> int:
    """Append replies (rows of CALLS without `ledger_version`) in one commit and return its version.

    Of several rows of one key the first is taken, so that no two rows of a key share a version. `table` is the ledger
    where the caller, and nobody else, has it open: opening it takes the longer, the more commits there are.
    """
    table = lake.ensure(CALLS) if table is None else table
    fresh = {(row["prompt_hash"], row["replicate"]): row for row in reversed(rows)}
    retrying = Retrying(
        retry=retry_if_exception_type(CommitFailedError),
        wait=wait_random_exponential(multiplier=0.02, max=0.5),
        stop=stop_after_delay(120),
        reraise=True,
    )
    try:
        for attempt in retrying:
            with attempt:
                table.update_incremental()
                version = table.version() + 1
                frame = conform([{**row, "ledger_version": version} for row in reversed(fresh.values())], CALLS)
                write_deltalake(
                    table,
                    frame.to_arrow(),
                    mode="append",
                    commit_properties=CommitProperties(max_commit_retries=0),
                )
    except CommitFailedError as error:
        raise LakeError(f"the ledger of the lake {lake.uri} is too busy to take replies; run again") from error
    except (DeltaError, OSError) as error:
        raise LakeError(f"cannot append to the ledger of the lake {lake.uri}: {first_words(error)}") from error
    return version


def compact(lake: Lake) -> None:
    """Join the small files of the ledger. Never fails a run: a lost race is as good, and what hinders it is logged."""
    try:
        lake.open(CALLS).optimize.compact(target_size=COMPACT_TARGET)
    except CommitFailedError:
        return
    except (EvalakeError, DeltaError, OSError) as error:
        logger.warning("the ledger of the lake %s was not compacted: %s", lake.uri, first_words(error))


def replies(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Of rows of the ledger, the earliest committed of each key."""
    return frame.sort("ledger_version").unique(subset=KEY, keep="first", maintain_order=True)


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
        columns = _HASH, pl.col("replicate").cast(pl.Int32), pl.col("file")
        keys = _scan(lake, files).select(columns).collect() if files else pl.DataFrame(schema=_NO_KEYS)
        runs = keys["file"].rle().struct  # the rows come file by file
        row_bits = np.uint64((1 << keys.height.bit_length()) - 1)
        marks = np.sort((keys["hash"].to_numpy() & ~row_bits) | np.arange(keys.height, dtype=np.uint64))
        ends = np.cumsum(runs.field("len").to_numpy(), dtype=np.int64)
        return cls(lake, tuple(runs.field("value")), ends, keys["replicate"].to_numpy(), marks, row_bits)

    def fetch(self, keys: Sequence[Key]) -> dict[Key, Row]:
        """The replies to `keys` as rows of CALLS without their requests; keys without a reply are left out."""
        places = self._places(keys)
        if not places.size:
            return {}
        files = [self.files[number] for number in np.unique(np.searchsorted(self.ends, places, "right"))]
        hashes = pl.Series([prompt_hash for prompt_hash, _ in keys]).unique().implode()
        found = replies(_scan(self.lake, files).filter(pl.col("prompt_hash").is_in(hashes)).drop("request", "file"))
        wanted = set(keys)
        return {
            key: row
            for row in found.collect().iter_rows(named=True)
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
def shared_index(uri: str, options: tuple[tuple[str, str], ...], ledger_id: str, version: int) -> LedgerIndex:
    """The index that all batches of a process share; id and version name the state of the ledger it was read for."""
    return LedgerIndex.read(Lake(uri, dict(options)))


def _scan(lake: Lake, files: Sequence[str]) -> pl.LazyFrame:
    return pl.scan_parquet(
        list(files), storage_options=dict(lake.storage_options) or None, include_file_paths="file", glob=False
    )
