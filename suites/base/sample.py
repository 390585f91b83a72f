"""Samples: what a dataset consists of, and what was left out of it."""

from dataclasses import dataclass
from functools import cached_property

from core.hashing import content_hash


@dataclass(frozen=True)
class Sample:
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

    @cached_property
    def sample_hash(self) -> str:
        """SHA-256 over everything that defines the sample: change its label, and it is another sample."""
        return content_hash(
            [
                self.suite,
                self.dataset,
                self.sample_id,
                self.input,
                self.target,
                self.label,
                self.category,
                self.severity,
                self.difficulty,
                self.cluster,
            ]
        )


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something in a source that did not become a sample, and why."""

    where: str  # file and, where it helps, line or entry
    reason: str  # a fixed phrase, so that it can be counted
    payload: str | None = None  # the refused material, for quarantine; None where it was left out by design


@dataclass(frozen=True)
class Dataset:
    """What a source gave: the samples in order, and all that was left out."""

    name: str
    samples: tuple[Sample, ...]
    skipped: tuple[Skipped, ...] = ()

    @cached_property
    def version(self) -> str:
        """SHA-256 over the sample hashes in order."""
        return content_hash([sample.sample_hash for sample in self.samples])
