"""The call ledger: an append-only log of answered calls, in which the first committed reply of a key is the reply.

Every row carries the version of the commit that brought it, so "first" is decided by the log itself and stays
decided, through compaction too. For that the appends of all writers are put in a row: a writer stamps its rows with
the next version, and stamps them again where another took that version first.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import polars as pl
from deltalake import CommitProperties, DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

from contracts.arrow import conform
from contracts.errors import LakeError
from contracts.tables import CALLS
from storage.lake import Lake

COMPACT_EVERY = 64  # commits between two compactions by a writer
COMPACT_TARGET = 32 * 2**20  # bytes; files larger than this are left alone, which bounds what a compaction rewrites
KEY = ["prompt_hash", "replicate"]

Row = dict[str, Any]
Key = tuple[str, int]  # prompt hash, replicate


def append(lake: Lake, rows: Sequence[Row]) -> int:
    """Append replies (rows of CALLS without `ledger_version`) in one commit and return its version.

    Of several rows of one key the first is taken, so that no two rows of a key share a version.
    """
    table = lake.ensure(CALLS)
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
        raise LakeError(f"cannot append to the ledger of the lake {lake.uri}: {str(error)[:300]}") from error
    return version


def compact(lake: Lake) -> None:
    """Join the small files of the ledger. Never fails a run: losing a race to another compaction is as good."""
    try:
        lake.open(CALLS).optimize.compact(target_size=COMPACT_TARGET)
    except CommitFailedError:
        return


def replies(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Of rows of the ledger, the earliest committed of each key."""
    return frame.sort("ledger_version").unique(subset=KEY, keep="first", maintain_order=True)


@dataclass(frozen=True)
class LedgerIndex:
    """Which keys the ledger held at one version, and in which of its files: sixteen bytes a row in memory.

    `heads` (uint64, sorted) are the first sixteen digits of the prompt hashes, `replicates` and `files` stand beside
    them. Two hashes that share a head may be taken for each other here, never in `fetch`, which compares them whole.
    """

    lake: Lake
    files: tuple[str, ...]
    heads: np.ndarray[Any, np.dtype[np.uint64]]
    replicates: np.ndarray[Any, np.dtype[np.int32]]
    file_of: np.ndarray[Any, np.dtype[np.int32]]

    @classmethod
    def read(cls, lake: Lake) -> "LedgerIndex":
        """One scan of the key columns of the newest version."""
        table = lake.ensure(CALLS)
        files = tuple(_file_uris(table))
        if not files:
            empty = np.empty(0)
            return cls(lake, (), empty.astype(np.uint64), empty.astype(np.int32), empty.astype(np.int32))
        keys = (
            _scan(lake, files)
            .select(_head().alias("head"), pl.col("replicate").cast(pl.Int32), pl.col("file"))
            .collect()
        )
        place = pl.DataFrame({"file": files, "number": np.arange(len(files), dtype=np.int32)})
        keys = keys.join(place, on="file", how="left").sort("head")
        return cls(lake, files, keys["head"].to_numpy(), keys["replicate"].to_numpy(), keys["number"].to_numpy())

    def fetch(self, keys: Sequence[Key]) -> dict[Key, Row]:
        """The replies to `keys` as rows of CALLS without their requests; keys without a reply are left out."""
        places = self._places(keys)
        if not places.size:
            return {}
        files = [self.files[number] for number in np.unique(self.file_of[places])]
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
        """The rows of the index at which the keys' heads and replicates stand."""
        wanted = pl.DataFrame(keys, schema={"prompt_hash": pl.String, "replicate": pl.Int32}, orient="row")
        heads = wanted.select(_head()).to_series().to_numpy()
        low, high = np.searchsorted(self.heads, heads, "left"), np.searchsorted(self.heads, heads, "right")
        counts = high - low
        starts = np.repeat(low - np.concatenate(([0], np.cumsum(counts)[:-1])), counts) if len(keys) else low
        places = np.arange(counts.sum()) + starts
        kept = places[self.replicates[places] == np.repeat(wanted["replicate"].to_numpy(), counts)]
        return np.asarray(kept, dtype=np.int64)


@lru_cache(maxsize=4)
def shared_index(uri: str, options: tuple[tuple[str, str], ...], version: int) -> LedgerIndex:
    """The index that all batches of a process share; `version` names the state of the ledger it was read for."""
    return LedgerIndex.read(Lake(uri, dict(options)))


def _head() -> pl.Expr:
    digits = pl.col("prompt_hash").str.slice(0, 16).str.decode("hex")
    return digits.bin.reinterpret(dtype=pl.UInt64, endianness="big")


def _file_uris(table: DeltaTable) -> list[str]:
    return sorted(table.file_uris())


def _scan(lake: Lake, files: Sequence[str]) -> pl.LazyFrame:
    return pl.scan_parquet(
        list(files), storage_options=dict(lake.storage_options) or None, include_file_paths="file", glob=False
    )
