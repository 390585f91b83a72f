"""Extract: read the sources of a run, land their samples, and keep what could not be read in quarantine."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from contracts.arrow import polars_schema
from contracts.errors import SourceError
from contracts.tables import SAMPLES
from storage.lake import Lake
from suites.base import Dataset, Suite
from tasks.publish import Refused, publish, quarantine


@dataclass(frozen=True)
class Extracted:
    """The datasets of a run and what was left out of them, by reason."""

    datasets: tuple[Dataset, ...]
    left_out: Counter[str]
    quarantined: int


def read_datasets(suite: Suite, sources: Sequence[str], limit: int | None) -> tuple[Dataset, ...]:
    """The datasets named by `sources` (the starter data without any), the first `limit` samples of each.

    Raises SourceError where a source gives no sample, or two of them give datasets of one name.
    """
    datasets = [_limited(suite.read_dataset(source), limit) for source in sources or suite.starter]
    for dataset in datasets:
        if not dataset.samples:
            raise SourceError(f"the dataset {dataset.name} is empty: there is nothing to evaluate")
    if twice := [name for name, times in Counter(dataset.name for dataset in datasets).items() if times > 1]:
        raise SourceError(f"two sources are named {twice[0]}: rename one of the files")
    return tuple(datasets)


def extract(lake: Lake, run_id: str, datasets: Sequence[Dataset]) -> Extracted:
    """Land the samples of every dataset version, and quarantine what was malformed."""
    quarantined = 0
    for dataset in datasets:
        quarantined += publish(lake, run_id, SAMPLES, sample_rows(dataset)).quarantined
        refused = [
            Refused(SAMPLES.table, out.payload, (out.reason,), f"{out.reason} in {out.where}", out.where)
            for out in dataset.left_out
            if out.payload is not None
        ]
        quarantined += quarantine(lake, run_id, f"extract:{dataset.version}", refused)
    left_out = Counter(out.reason for dataset in datasets for out in dataset.left_out)
    return Extracted(tuple(datasets), left_out, quarantined)


def sample_rows(dataset: Dataset) -> pl.DataFrame:
    """The samples of a dataset version as rows of SAMPLES."""
    shared = ("suite", "sample_id", "input", "target", "label", "category", "severity", "difficulty", "cluster", "note")
    columns = {name: [getattr(sample, name) for sample in dataset.samples] for name in (*shared, "sample_hash")}
    frame = pl.DataFrame(
        {
            **columns,
            "dataset": [dataset.name] * len(dataset.samples),
            "dataset_version": [dataset.version] * len(dataset.samples),
            "position": range(len(dataset.samples)),
        },
        schema_overrides=polars_schema(SAMPLES),
    )
    return frame.select([column.name for column in SAMPLES.columns])


def _limited(dataset: Dataset, limit: int | None) -> Dataset:
    return dataset if limit is None else Dataset(dataset.name, dataset.samples[:limit], dataset.left_out)
