"""Extract: read the sources of a run, land their samples, and keep what could not be read in quarantine."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from evalake.contracts.engines.arrow import polars_schema
from evalake.contracts.tables import SAMPLES
from evalake.core.errors import EvalakeError, SourceError, SuiteError, UsageError
from evalake.core.redaction import redact, require_no_password
from evalake.sdk import Dataset, Sample, Skipped, Suite
from evalake.storage.forget import forgotten_samples
from evalake.storage.lake import Lake
from evalake.tasks.publish import Refused, publish, quarantine

ROWS_AT_ONCE = 20_000  # samples that are audited and landed at once, which bounds memory


@dataclass(frozen=True)
class Extracted:
    """What was left out of the datasets of a run, by reason."""

    skipped: Counter[str]
    quarantined: int


def read_datasets(suite: Suite, sources: Sequence[str]) -> tuple[Dataset, ...]:
    """Read the datasets named by `sources`; the starter data without any.

    Raises SourceError where a source gives no sample, or two of them give datasets of one name, UsageError where there
    is neither a source nor starter data, or a source is a URL with a password.
    """
    for source in sources:
        require_no_password("a dataset", source, "leave the password out and set PGPASSWORD where it is read")
    if not (sources or suite.data.starter):
        raise UsageError(f"{suite.name} has no starter data: name a source with --dataset")
    datasets = [_read(suite, source) for source in sources or suite.data.starter]
    for dataset in datasets:
        if not dataset.samples:
            raise SourceError(f"the dataset {dataset.name} is empty: there is nothing to evaluate")
    if twice := [name for name, times in Counter(dataset.name for dataset in datasets).items() if times > 1]:
        raise SourceError(f"two sources are named {twice[0]}: rename one of the files")
    return tuple(datasets)


def _read(suite: Suite, source: str) -> Dataset:
    try:
        return suite.data.read(source)
    except EvalakeError:
        raise
    except Exception as error:
        message = f"{type(error).__name__}: {error}"
        raise SuiteError(f"the code of {suite.name} that reads {redact(source)!r} failed with {message}") from error


def without_forgotten(lake: Lake, datasets: Sequence[Dataset]) -> tuple[Dataset, ...]:
    """Remove from datasets the samples that were forgotten, which count as left out.

    Raises SourceError where a dataset has no other sample.
    """
    forgotten = forgotten_samples(lake)
    return tuple(_without(dataset, forgotten) for dataset in datasets) if forgotten else tuple(datasets)


def _without(dataset: Dataset, forgotten: Collection[str]) -> Dataset:
    kept = tuple(sample for sample in dataset.samples if sample.sample_hash not in forgotten)
    gone = len(dataset.samples) - len(kept)
    if gone and not kept:
        raise SourceError(f"every sample of the dataset {dataset.name} was forgotten: there is nothing left of it")
    return Dataset(dataset.name, kept, (*dataset.skipped, *[Skipped(dataset.name, "forgotten")] * gone))


def extract(lake: Lake, run_id: str, datasets: Sequence[Dataset]) -> Extracted:
    """Land the samples of every dataset version, once, and quarantine what was malformed."""
    quarantined = 0
    for dataset in datasets:
        quarantined += _land_samples(lake, run_id, dataset)
        refused = [
            Refused(SAMPLES.table, out.payload, (out.reason,), f"{out.reason} in {out.where}", out.where)
            for out in dataset.skipped
            if out.payload is not None
        ]
        quarantined += quarantine(lake, run_id, f"extract:{dataset.version}", refused)
    skipped = Counter(out.reason for dataset in datasets for out in dataset.skipped)
    return Extracted(skipped, quarantined)


def _land_samples(lake: Lake, run_id: str, dataset: Dataset) -> int:
    """Land the samples of a dataset, unless all of its version are there already; returns how many were refused."""
    version = pl.col("dataset_version") == dataset.version
    if lake.frame(SAMPLES).filter(version).select(pl.len()).collect().item() == len(dataset.samples):
        return 0
    parts = range(0, len(dataset.samples), ROWS_AT_ONCE)
    return sum(publish(lake, run_id, SAMPLES, sample_rows(dataset, first, ROWS_AT_ONCE)).quarantined for first in parts)


def sample_of(row: Mapping[str, Any]) -> Sample:
    """Build the sample that a row of SAMPLES keeps."""
    return Sample(**{name: row[name] for name in Sample.__dataclass_fields__})


def sample_rows(dataset: Dataset, first: int = 0, most: int | None = None) -> pl.DataFrame:
    """Build the rows of SAMPLES of a dataset version: all, or at most `most` from the `first` on."""
    samples = dataset.samples[first : None if most is None else first + most]
    fields = (*Sample.__dataclass_fields__, "sample_hash")
    columns = {name: [getattr(sample, name) for sample in samples] for name in fields}
    frame = pl.DataFrame(
        {
            **columns,
            "dataset": [dataset.name] * len(samples),
            "dataset_version": [dataset.version] * len(samples),
            "position": range(first, first + len(samples)),
        },
        schema_overrides=polars_schema(SAMPLES),
    )
    return frame.select([column.name for column in SAMPLES.columns])
