"""What is read by the million: sequences that lie in a file, and sets of digests."""

import pickle
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from tempfile import SpooledTemporaryFile
from threading import Lock
from typing import Any, TypeVar, overload

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

T = TypeVar("T")

PART = 1_000  # items that are written and read at once
IN_MEMORY = 8 * 2**20  # bytes of parts, beyond which they lie in a file
RECENT = 50_000  # digests that are merged at once


class Spool(Sequence[T]):
    """A sequence that grows at its end, and lies in an unnamed temporary file where it is large.

    An item is another, equal object each time that it is read.
    """

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._file = SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 - see __del__
        self._lock = Lock()
        self._ends = [0]  # of each written part
        self._last: list[T] = []
        for item in items:
            self.append(item)

    def __del__(self) -> None:
        self._file.close()

    def append(self, item: T) -> None:
        """Add an item."""
        self._last.append(item)
        if len(self._last) == PART:
            with self._lock:
                self._file.seek(self._ends[-1])
                self._file.write(pickle.dumps(self._last, pickle.HIGHEST_PROTOCOL))
                self._ends.append(self._file.tell())
                self._last = []

    def _part(self, number: int) -> list[T]:
        if number == len(self._ends) - 1:
            return self._last
        with self._lock:
            self._file.seek(self._ends[number])
            packed = self._file.read(self._ends[number + 1] - self._ends[number])
        part: list[T] = pickle.loads(packed)
        return part

    @override
    def __len__(self) -> int:
        return (len(self._ends) - 1) * PART + len(self._last)

    @override
    def __iter__(self) -> Iterator[T]:
        for number in range(len(self._ends)):
            yield from self._part(number)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    @override
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        places = range(len(self))[index]
        if isinstance(places, int):
            return self._part(places // PART)[places % PART]
        return spooled(self._at(places))

    def _at(self, places: range) -> Iterator[T]:
        number, part = -1, self._last
        for place in places:
            if place // PART != number:
                number = place // PART
                part = self._part(number)
            yield part[place % PART]


def spooled(items: Iterable[T]) -> Sequence[T]:
    """Keep items: as a tuple where they are few, else in a file."""
    kept = items if isinstance(items, Spool) else Spool(items)
    return kept if len(kept) >= PART else tuple(kept)


class Seen:
    """A set of texts that takes 16 bytes for each: their BLAKE2 digests."""

    def __init__(self) -> None:
        self._settled: NDArray[Any] = np.empty(0, "S16")  # sorted
        self._recent: set[bytes] = set()

    def __contains__(self, text: str) -> bool:
        return self._has(_digest(text))

    def add(self, text: str) -> bool:
        """Add a text; returns whether it is new."""
        if self._has(digest := _digest(text)):
            return False
        self._recent.add(digest)
        if len(self._recent) == RECENT:
            self._settled = np.sort(np.concatenate([self._settled, np.array([*self._recent], "S16")]))
            self._recent = set()
        return True

    def _has(self, digest: bytes) -> bool:
        place = bisect_left(self._settled, digest)
        return digest in self._recent or (place < len(self._settled) and self._settled[place] == digest)


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest().rstrip(b"\0")  # as NumPy has it
