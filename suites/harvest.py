"""A dataset in the making: what its source gives becomes samples, or is left out for a stated reason."""

from collections.abc import Callable
from dataclasses import dataclass, field

from contracts.errors import SourceError
from suites.base import Dataset, LeftOut, Sample
from suites.sources import as_payload, summary

DUPLICATE = "duplicate"
NOT_TEXT = "not storable text (invalid Unicode or NUL)"
REPEATED_ID = "sample_id already taken"


@dataclass
class BaseHarvest:
    """Collects one dataset in the order in which its source is read; a suite adds what it takes for a sample."""

    dataset: str
    samples: list[Sample] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)

    def leave(self, where: str, reason: str, refused: str | None = None) -> None:
        """Leave something out; `refused` is what is malformed, None where it is left out by design."""
        self.left_out.append(LeftOut(where, reason, None if refused is None else as_payload(refused)))

    def keep(self, sample: Sample) -> None:
        """Add a sample."""
        self.ids.add(sample.sample_id)
        self.samples.append(sample)

    def result(self) -> Dataset:
        """The dataset as collected so far."""
        return Dataset(self.dataset, tuple(self.samples), tuple(self.left_out))


def read_whole(source: str, read: Callable[[], Dataset], wanted: str) -> Dataset:
    """The dataset that `read` gives of a source; `wanted` is what it is to hold, in words.

    Raises SourceError where it cannot be read, or holds none of what is wanted.
    """
    try:
        dataset = read()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise SourceError(f"cannot read the dataset source {source!r}: {reason}") from error
    if not dataset.samples:
        why = ", ".join(f"{count} x {reason}" for reason, count in summary(dataset).left_out.items())
        raise SourceError(f"the dataset source {source!r} holds no {wanted} ({why or 'it is empty'})")
    return dataset
