"""Samples: what a dataset consists of, what was left out of it, and how millions of them are kept."""

import hashlib
import hmac
import pickle
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from hashlib import blake2b
from itertools import count
from operator import attrgetter
from tempfile import SpooledTemporaryFile
from threading import Lock
from typing import Any, TypeVar, overload

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from evalake.core.configuration import UNKNOWN
from evalake.core.hashing import content_hash, list_hash, record
from evalake.models.request import Failure, Reply, Request


class _Hashed:
    """Where a sample keeps its hash: as bytes, which take half the memory of their digits."""

    __slots__ = ("_digest",)
    _digest: bytes


@record
class Sample(_Hashed):
    """One dataset item. `input` is text, or JSON where it has parts; `target` is JSON."""

    suite: str
    dataset: str
    sample_id: str
    input: str
    target: str | None = None
    label: str | None = None
    category: str | None = None
    severity: str | None = None
    difficulty: str | None = None
    cluster: str | None = None
    note: str | None = None

    @property
    def sample_hash(self) -> str:
        """SHA-256 over everything that defines the sample: change its label, and it is another sample."""
        try:
            return self._digest.hex()
        except AttributeError:
            self._digest = bytes.fromhex(content_hash(_defining(self)))
        return self._digest.hex()


_defining = attrgetter(
    "suite", "dataset", "sample_id", "input", "target", "label", "category", "severity", "difficulty", "cluster"
)


def unit_of(dataset: str, cluster: str) -> str:
    """Name what is resampled together: the samples of one cluster in a dataset, or in all if it begins with `/`."""
    return cluster.removeprefix("/") if cluster.startswith("/") else f"{dataset}/{cluster}"


LONGEST_LINE = 16 * 1024 * 1024  # bytes of one record of a table
LINE_TOO_LONG = "line too long"
NOT_READ = "(not read)"  # stands for a file that is left out unread


@record
class Record:
    """One record of a table: where it stands, its values by column, and its raw text as quarantine would show it."""

    where: str
    values: Mapping[str, Any]
    raw: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something in a source that did not become a sample, and why."""

    where: str  # file and, where it helps, line or entry
    reason: str  # a fixed phrase, so that it can be counted
    payload: str | None = None  # the refused material, for quarantine; None where it was left out by design
    label: str | None = None  # the label that it would have had, where that is known


@dataclass(frozen=True, slots=True)
class Label:
    """What a source tells that somebody said of one of its samples: answers to the suite's questions."""

    sample_id: str
    annotator: str
    question: str
    answer: str | float
    at: datetime | None = None
    note: str | None = None


@dataclass(frozen=True)
class Dataset:
    """What a source gave: the samples in order, all that was left out, and what people said of samples."""

    name: str
    samples: Sequence[Sample]
    skipped: tuple[Skipped, ...] = ()
    notes: tuple[str, ...] = ()  # how the source was understood, for people
    labels: tuple[Label, ...] = ()

    @cached_property
    def version(self) -> str:
        """SHA-256 over the sample hashes in order."""
        return list_hash(sample.sample_hash for sample in self.samples)


# Conversations: an item, the exchanges about it, and the functions by which a suite asks and scores.


Options = Mapping[str, Any]  # the suite's section of the configuration, over its defaults


@record
class Item:
    """One thing to be measured: a sample, answered by a model, judged by a judge or by rules."""

    sample: Sample
    model: str
    judge: str | None = None
    prompt_type: str = "direct"
    replicate: int = 0
    fence: str = ""  # of its sample, by the lake's secret, for a suite that is `fenced`; empty where there is no lake


@record
class Exchange:
    """A request with what came back for it."""

    prompt_hash: str
    outcome: Reply | Failure
    from_ledger: bool = False  # another run had asked; what this run asked is its own, in a retry too
    endpoint: str = UNKNOWN  # that was asked
    revision: int = 0  # of the reply; higher where an earlier one was withdrawn
    imported: bool = False  # whether the reply comes from a log of another tool, and was not given to evalake


@dataclass(frozen=True, slots=True)
class Recorded:
    """One line of recorded results: the item and the replies that were given, in the order of its conversation."""

    item: Item
    prompt_hashes: tuple[str, ...]
    replies: tuple[Reply, ...]
    requests: tuple[str, ...] = ()  # JSON of what was asked, for each reply; none where that was not recorded


@dataclass(frozen=True)
class RecordedFolder:
    """A folder of recorded results: its lines with their places, people's labels on them, and what was left out.

    What was left out with a payload was refused; without one it is only counted, like a file without a partner.
    """

    lines: Sequence[tuple[str, Recorded]]
    labels: Sequence[Mapping[str, Any]]  # rows of `human_labels`
    skipped: Sequence[Skipped]
    files: Mapping[str, int]  # how many files were read, by folder
    remarks: Sequence[str] = ()  # what a reader of the import is told, in sentences


# Replies so far -> the next request, or None when the conversation is done. The first request goes to the subject
# (or, where the material is already there, to the judge).
Converse = Callable[[Item, Sequence[Exchange], Options], Request | None]

# An item whose conversation is done -> its rows by table, or no rows where a failure says nothing about the model.
Score = Callable[[Item, Sequence[Exchange], Options], Mapping[str, Sequence[Mapping[str, Any]]]]


# Delimit text of strangers inside a prompt, marked so that nothing in it can end the mark or imitate another.


ANY_FENCE = "0" * 32
"""As long as every fence is, where only the length of a prompt matters."""

_NAME = re.compile(r"[a-z_]{1,40}")


def fence(content: str, secret: bytes = b"") -> str:
    """Compute 128 bits of HMAC-SHA256 over the content, in hexadecimal digits: only who writes a prompt knows it.

    The same content has the same fence. Without a secret, as where there is no lake, anybody can compute it.
    """
    return hmac.new(secret, content.encode("utf-8", "surrogatepass"), "sha256").hexdigest()[:32]


def delimit_untrusted(name: str, content: str) -> str:
    """Write the content as a block of its own lines. Raises ValueError for a name that is not lower-case letters."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"a block cannot be called {name!r}")
    mark = nonce(name, content)
    return f"<<<{name} {mark}>>>\n{content}\n<<<end {name} {mark}>>>"


def nonce(name: str, content: str) -> str:
    """Compute 32 hexadecimal digits that follow from the content, and do not occur in it."""
    marks = (_digest(name, content, rounds) for rounds in count())
    return next(mark for mark in marks if mark not in content)  # nobody has found a content that holds the first


def _digest(name: str, content: str, rounds: int) -> str:
    data = f"{name}\n{rounds}\n{content}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(data).hexdigest()[:32]


def read_delimited(name: str, text: str) -> str | None:
    """Read the content of the first block called `name`, whole, as its nonce proves; None where there is none."""
    opening = re.search(rf"^<<<{name} ([0-9a-f]{{32}})>>>\n", text, re.MULTILINE)
    if opening is None:
        return None
    end = text.find(f"\n<<<end {name} {opening[1]}>>>", opening.end() - 1)
    if end < 0:
        return None
    content = text[opening.end() : end] if end >= opening.end() else ""
    return content if nonce(name, content) == opening[1] else None


# What is read by the million: sequences that lie in a file, and sets of digests.


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
        return self._has(_short_digest(text))

    def add(self, text: str) -> bool:
        """Add a text; returns whether it is new."""
        if self._has(digest := _short_digest(text)):
            return False
        self._recent.add(digest)
        if len(self._recent) == RECENT:
            self._settled = np.sort(np.concatenate([self._settled, np.array([*self._recent], "S16")]))
            self._recent = set()
        return True

    def _has(self, digest: bytes) -> bool:
        place = bisect_left(self._settled, digest)
        return digest in self._recent or (place < len(self._settled) and self._settled[place] == digest)


def _short_digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest().rstrip(b"\0")  # as NumPy has it
