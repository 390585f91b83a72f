"""A dataset in the making: what its source gives becomes samples, or is left out for a stated reason."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from core.errors import SourceError
from suites.base.sample import Dataset, Sample, Skipped
from suites.base.sources import Record, as_payload, form_of, read_table, summary

DUPLICATE = "duplicate"
NOT_TEXT = "not storable text (invalid Unicode or NUL)"
REPEATED_ID = "sample_id already taken"


@dataclass
class DatasetBuilder:
    """Collects one dataset in the order in which its source is read; a suite adds what it takes for a sample."""

    dataset: str
    samples: list[Sample] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)  # how the source was understood

    def skip(self, where: str, reason: str, refused: str | None = None, label: str | None = None) -> None:
        """Record what is skipped; `refused` is the malformed material, None where it is skipped by design."""
        self.skipped.append(Skipped(where, reason, None if refused is None else as_payload(refused), label))

    def records(self, path: Path, needed: Collection[str]) -> Iterator[Record]:
        """Yield the records of a table, as `read_table` reads it; skip what could not be read as one."""
        if form := form_of(path, needed):
            self.notes.append(f"{path.name}: read as {form}")
        for record in read_table(path, needed):
            if isinstance(record, Skipped):
                self.skip(record.where, record.reason, record.payload)
            else:
                yield record

    def add(self, sample: Sample) -> None:
        """Add a sample."""
        self.ids.add(sample.sample_id)
        self.samples.append(sample)

    def result(self) -> Dataset:
        """Build the dataset from what was collected so far."""
        return Dataset(self.dataset, tuple(self.samples), tuple(self.skipped), tuple(self.notes))


def read_whole(source: str, read: Callable[[], Dataset], wanted: str, *, may_be_empty: bool = False) -> Dataset:
    """Read the dataset of a source by calling `read`; `wanted` names, in words, what it must hold.

    Raises SourceError where it cannot be read, or holds none of what is wanted, unless it may be empty.
    """
    try:
        dataset = read()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise SourceError(f"cannot read the dataset source {source!r}: {reason}") from error
    if not dataset.samples and not may_be_empty:
        why = ", ".join(f"{count} x {reason}" for reason, count in summary(dataset).skipped.items())
        raise SourceError(f"the dataset source {source!r} holds no {wanted} ({why or 'it is empty'})")
    return dataset
