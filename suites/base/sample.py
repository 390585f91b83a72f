"""Samples: what a dataset consists of, and what was left out of it."""

from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter

from core.hashing import content_hash, list_hash
from core.records import record


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


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something in a source that did not become a sample, and why."""

    where: str  # file and, where it helps, line or entry
    reason: str  # a fixed phrase, so that it can be counted
    payload: str | None = None  # the refused material, for quarantine; None where it was left out by design
    label: str | None = None  # the label that it would have had, where that is known


@dataclass(frozen=True)
class Dataset:
    """What a source gave: the samples in order, and all that was left out."""

    name: str
    samples: tuple[Sample, ...]
    skipped: tuple[Skipped, ...] = ()
    notes: tuple[str, ...] = ()  # how the source was understood, for people

    @cached_property
    def version(self) -> str:
        """SHA-256 over the sample hashes in order."""
        return list_hash(sample.sample_hash for sample in self.samples)
