"""Samples: what a dataset consists of, and what was left out of it."""

import hashlib
import hmac
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import count
from operator import attrgetter
from typing import Any

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
