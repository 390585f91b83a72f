"""Import of samples: a suite that has no recorded results takes in the material it will judge."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from core.hashing import content_hash
from core.redaction import redact
from reports.coverage import DEFAULT, problems
from storage.lake import Lake
from suites.base import Dataset, Suite
from tasks.runtime import runs
from tasks.runtime.runs import Run, Tally
from tasks.steps.coverage import Source, of_sources, save_coverage
from tasks.steps.extract import extract, read_datasets, without_forgotten
from tasks.steps.preflight import require_tables


def import_samples(lake: Lake, suite: Suite, sources: Sequence[str], labels: Mapping[str, Any] = runs.NO_LABELS) -> str:
    """Land the samples of all sources as one run without items, named by their content; returns its id.

    Raises SourceError where a source cannot be read or is empty, OlderLakeError where the lake is to be migrated.
    """
    started = datetime.now(UTC)
    require_tables(lake, suite)
    datasets = without_forgotten(lake, read_datasets(suite, sources))
    return land_samples(lake, suite, datasets, {"files": [redact(source) for source in sources], **labels}, started)


def land_samples(
    lake: Lake, suite: Suite, datasets: Sequence[Dataset], parameters: Mapping[str, Any], started: datetime
) -> str:
    """Land the samples of datasets as one run without items, named by their content; returns its id."""
    run_id = "import-" + content_hash([suite.name, [dataset.version for dataset in datasets]])[:12]
    run = Run(
        run_id=run_id,
        suite=suite.name,
        origin="import",
        parameters=parameters,
        dataset_versions=runs.versions_of(datasets),
        models=(),
        judges=(),
        samples=sum(len(dataset.samples) for dataset in datasets),
        items=0,
        started_at=started,
    )
    runs.save(lake, run)
    extracted = extract(lake, run_id, datasets)
    covered = of_sources(map(Source.of, datasets))
    save_coverage(lake, run_id, covered)
    skipped = ", ".join(f"{count} {reason}" for reason, count in extracted.skipped.items())
    message = f"left out of the sources: {skipped}" if skipped else None
    tally = Tally(rows_quarantined=extracted.quarantined)
    state = "incomplete" if tally.rows_quarantined or problems(covered, DEFAULT) else "completed"
    runs.save(lake, run.ended(state, tally=tally, message=message))
    return run_id
