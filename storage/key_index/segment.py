"""A segment: the keys of some files of the ledger, sorted, each with its place; in memory, or mapped from a file.

A key is known here by its mark, 64 bits of its prompt hash and replicate. Two keys may share a mark, so whoever reads
the rows at the places compares the keys whole. Marks are as evenly spread as the hashes they come from, so a table of
where the marks with the same first bits start (`starts`) leads to a few dozen of them: looking for a key reads a page
of the table and one or two of the entries, however many there are.
"""

import mmap
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import polars as pl

Array = np.ndarray[Any, np.dtype[Any]]

MOST_ROWS = 2**32  # of one segment: a place has 32 bits
BUCKET = 32  # marks that share their first bits, at least, on average
BLOCK = 1_000_000  # rows that are merged at a time

_MARK, _PLACE = np.dtype("<u8"), np.dtype("<u4")
_ENTRY = np.dtype([("mark", _MARK), ("place", _PLACE)])  # side by side: a place is read right after its mark was found
_ODD = 0x9E3779B97F4A7C15  # an odd multiplier: it sets replicates of one prompt far apart

MARK = (
    # A prompt hash that is not hexadecimal counts as 0.
    (pl.col("prompt_hash").str.slice(0, 16).str.to_integer(base=16, dtype=pl.UInt64, strict=False).fill_null(0)).alias(
        "mark"
    )
)


def marks_of(keys: pl.DataFrame) -> Array:
    """Compute the marks of keys, a frame of `mark` (of MARK) and `replicate`; the same in every process."""
    replicates = keys["replicate"].to_numpy().astype(np.uint64)
    return np.asarray(keys["mark"].to_numpy() + replicates * np.uint64(_ODD), dtype=_MARK)


@dataclass(frozen=True)
class Segment:
    """The keys of some files. A place is the number of a row, counted through all files in their order."""

    files: tuple[str | None, ...]  # None: one that is of no interest, such as one that is gone
    lengths: tuple[int, ...]  # rows of each file
    entries: Array  # a mark and a place each, sorted by mark
    starts: Array  # for each value of the first bits, where its marks begin; then the number of all marks

    @classmethod
    def of(cls, files: Sequence[str], lengths: Sequence[int], marks: Array) -> "Segment":
        """Build a segment from marks that come in the order of the rows."""
        entries = _entries(marks, np.arange(marks.size))
        return cls(tuple(files), tuple(lengths), entries, _starts(entries))

    @classmethod
    def joined(cls, segments: Sequence["Segment"]) -> "Segment":
        """Join segments in memory, without the rows of files that are of no interest."""
        entries = np.concatenate(list(_blocks(segments)))
        files, lengths = _of_interest(segments)
        return cls(files, lengths, entries, _starts(entries))

    @classmethod
    def load(
        cls, path: Path, files: Sequence[str | None], lengths: Sequence[int], *, in_order: bool = False
    ) -> "Segment":
        """Map a segment from the file that `write` made. Raises OSError or ValueError where it is not that.

        `in_order` says that all of it will be read, and not a page here and there.
        """
        rows = sum(lengths)
        with path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if len(mapped) != rows * _ENTRY.itemsize + ((1 << _bits(rows)) + 1) * _PLACE.itemsize:
            raise ValueError(f"{path} has {len(mapped)} bytes, not those of {rows} keys")
        mapped.madvise(mmap.MADV_SEQUENTIAL if in_order else mmap.MADV_RANDOM)
        entries = np.frombuffer(mapped, _ENTRY, rows)
        starts = np.frombuffer(mapped, _PLACE, offset=entries.nbytes)
        if starts[-1] != rows:
            raise ValueError(f"{path} ends before its end")
        return cls(tuple(files), tuple(lengths), entries, starts)

    @property
    def marks(self) -> Array:
        """The marks, sorted."""
        return np.asarray(self.entries["mark"])

    @property
    def rows(self) -> int:
        """The number of rows in files that are of interest."""
        return sum(length for file, length in zip(self.files, self.lengths, strict=True) if file is not None)

    def only(self, files: Collection[str]) -> "Segment":
        """Copy the segment; files other than these become None, of no interest."""
        return replace(self, files=tuple(file if file in files else None for file in self.files))

    def find(self, marks: Array) -> tuple[Array, Array, Array]:
        """Find every row that has one of some marks, in a file of interest.

        Returns:
            For each row found: the index of its mark in `marks`, of its file in `files`, and of the row in that file.
        """
        which, position = np.arange(marks.size), self.lower_bound(marks)
        found: list[tuple[Array, Array]] = [(which[:0], which[:0])]
        while which.size:  # the rows of one mark stand side by side
            same = position < self.entries.size
            same[same] = self.marks[position[same]] == marks[which[same]]
            which, position = which[same], position[same]
            found.append((which, self.entries["place"][position].astype(np.int64)))
            position = position + 1
        asked, places = (np.concatenate(parts) for parts in zip(*found, strict=True))
        ends = np.cumsum(self.lengths, dtype=np.int64)
        files = np.searchsorted(ends, places, "right")
        kept = self._is_of_interest()[files]
        return asked[kept], files[kept], (places - (ends - self.lengths)[files])[kept]

    def lower_bound(self, wanted: Array) -> Array:
        """Find, for each of the wanted marks, the index of the first mark that is not less."""
        bucket = (wanted >> np.uint64(64 - _bits(self.entries.size))).astype(np.int64)
        low, high = self.starts[bucket].astype(np.int64), self.starts[bucket + 1].astype(np.int64)
        while (is_open := low < high).any():
            middle = (low + high) // 2
            less = is_open.copy()
            less[is_open] = self.marks[middle[is_open]] < wanted[is_open]
            high = np.where(is_open & ~less, middle, high)
            low = np.where(less, middle + 1, low)
        return low

    def _is_of_interest(self) -> Array:
        return np.fromiter((file is not None for file in self.files), bool, len(self.files))


def repeated(marks: Array) -> Array:
    """Select from sorted marks those that occur more than once."""
    return np.unique(marks[1:][marks[1:] == marks[:-1]])


def write(file: BinaryIO, segments: Sequence[Segment]) -> tuple[tuple[str, ...], tuple[int, ...], Array]:
    """Merge segments into a file, without the rows of files that are of no interest; memory holds a block at a time.

    Returns:
        The files, the rows of each, and the marks that more than one row has.
    """
    names, lengths = _of_interest(segments)
    rows = sum(lengths)
    counts = np.zeros((1 << _bits(rows)) + 1, np.int64)
    twice = [np.empty(0, _MARK)]
    for entries in _blocks(segments):
        file.write(entries.tobytes())
        buckets, count = np.unique(entries["mark"] >> np.uint64(64 - _bits(rows)), return_counts=True)
        counts[buckets.astype(np.int64) + 1] += count
        twice.append(repeated(entries["mark"]))
    file.write(np.cumsum(counts).astype(_PLACE).tobytes())
    return names, lengths, np.concatenate(twice)


def _of_interest(segments: Sequence[Segment]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """List the files of segments that are of interest, and the rows of each."""
    kept = [
        (name, length)
        for segment in segments
        for name, length in zip(segment.files, segment.lengths, strict=True)
        if name is not None
    ]
    return tuple(name for name, _ in kept), tuple(length for _, length in kept)


def _blocks(segments: Sequence[Segment]) -> Iterator[Array]:
    """Yield the entries of all segments with their new places, a range of marks at a time."""
    moves, first = [], 0
    for segment in segments:
        lengths = np.where(segment._is_of_interest(), segment.lengths, 0)
        new = first + np.cumsum(lengths) - lengths
        moves.append(new - (np.cumsum(segment.lengths) - segment.lengths))
        first += int(lengths.sum())
    count = max(1, sum(segment.entries.size for segment in segments) // BLOCK)
    bounds = (np.arange(1, count, dtype=np.float64) * (2.0**64 / count)).astype(_MARK)
    cuts = [[0, *segment.lower_bound(bounds), segment.entries.size] for segment in segments]
    for block in range(count):
        marks, places = [], []
        for segment, move, cut in zip(segments, moves, cuts, strict=True):
            part = segment.entries[cut[block] : cut[block + 1]]
            old = part["place"].astype(np.int64)
            files = np.searchsorted(np.cumsum(segment.lengths), old, "right")
            kept = segment._is_of_interest()[files]
            marks.append(part["mark"][kept])
            places.append((old + move[files])[kept])
        yield _entries(np.concatenate(marks), np.concatenate(places))


def _entries(marks: Array, places: Array) -> Array:
    order = np.argsort(marks)
    entries = np.empty(marks.size, _ENTRY)
    entries["mark"], entries["place"] = marks[order], places[order]
    return entries


def _starts(entries: Array) -> Array:
    """Find where the marks of each value of their first bits begin in sorted entries; the last is their number."""
    bits = _bits(entries.size)
    firsts = np.arange(1 << bits, dtype=np.uint64) << np.uint64(64 - bits)
    starts = np.searchsorted(np.ascontiguousarray(entries["mark"]), firsts)
    return np.append(starts, entries.size).astype(_PLACE)


def _bits(rows: int) -> int:
    """Compute how many first bits of a mark are the index into `starts`."""
    return max(1, (rows // BUCKET).bit_length() - 1)
