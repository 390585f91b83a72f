"""The samples that are to be forgotten, by hash, session or dataset."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from contracts.tables import SAMPLES
from core.errors import UsageError
from storage.forget import forgotten_samples
from storage.lake import Lake
from suites.registry import suite, suite_names

TEXTS = ("input", "target", "note")  # columns of samples that hold what somebody wrote
CHUNK_ROWS = 10_000


@dataclass(frozen=True)
class Choice:
    """Samples in all their versions, and the words by which they were chosen."""

    samples: pl.DataFrame
    sample: str | None = None
    session: str | None = None
    dataset: str | None = None

    @property
    def hashes(self) -> set[str]:
        """The content hashes of the samples."""
        return set(self.samples["sample_hash"])

    @property
    def names(self) -> set[tuple[str, str]]:
        """Dataset and id of each sample."""
        return set(self.samples.select("dataset", "sample_id").iter_rows())

    @property
    def texts(self) -> set[str]:
        """All that stands in the samples."""
        return {text for name in TEXTS for text in self.samples[name].drop_nulls()}


def choose(lake: Lake, sample: str | None, session: str | None, dataset: str | None) -> Choice:
    """Find the samples that exactly one of the three names. Raises UsageError where it is not exactly one."""
    if sum(name is not None for name in (sample, session, dataset)) != 1 or "" in (sample, session, dataset):
        raise UsageError("say what to forget by exactly one of --sample, --session and --dataset")
    if sample is not None:
        which = pl.col("sample_hash") == sample
    elif session is not None:
        of_sessions = [name for name in suite_names() if "session_id" in suite(name).results.column]
        which = pl.col("suite").is_in(of_sessions) & (pl.col("sample_id") == session)
    else:
        which = pl.col("dataset") == dataset
    columns = ("sample_hash", "dataset", "dataset_version", "sample_id", *TEXTS)
    samples = lake.frame(SAMPLES).filter(which).select(columns).unique().collect()
    return Choice(samples, sample, session, dataset)


def streamed(rows: pl.LazyFrame) -> Iterator[tuple[Any, ...]]:
    """Yield rows a chunk at a time, for all of them may be more than memory holds."""
    for chunk in rows.collect_batches(chunk_size=CHUNK_ROWS):
        yield from chunk.iter_rows()


def nothing_chosen(lake: Lake, choice: Choice) -> UsageError:
    """Build the error that the lake has nothing of that name, or nothing any more."""
    if choice.sample is not None and choice.sample in forgotten_samples(lake):
        return UsageError(f"the sample {choice.sample[:12]} was forgotten already")
    return UsageError(
        f"the lake {lake.uri} has nothing of that name: `evalake sql 'select * from samples'` shows what there is"
    )
