"""Label: sheets for people to fill in, drawn from a run's results, and their words back into `human_labels`."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import polars as pl

from contracts.errors import UsageError
from contracts.hashing import content_hash
from contracts.human_labels import HUMAN_LABELS
from contracts.tables import RUNS
from storage.lake import Lake
from storage.landing import Landed
from suites.base import Labelling, Labels, Refusal, SheetFormat
from suites.registry import suite as find_suite
from tasks.context import SEED
from tasks.measure import run_results
from tasks.publish import Published, publish


@dataclass(frozen=True, slots=True)
class Labelled:
    """What an import of labels did."""

    landed: Landed
    refused: Sequence[Refusal]
    empty: int


def suite_of(lake: Lake, run_id: str) -> str:
    """The suite of a run. Raises UsageError where there is no such run."""
    runs = lake.frame(RUNS).filter(pl.col("run_id") == run_id).collect()
    if runs.is_empty():
        raise UsageError(f"the lake {lake.uri} has no run {run_id}: `evalake runs` lists what there is")
    return str(runs["suite"][0])


def label_sheet(lake: Lake, run_id: str, size: int, form: SheetFormat) -> str:
    """A sheet of at most `size` results of the run that nobody has labelled, the informative ones favoured.

    Raises UsageError where there is no such run, or its suite's results are not labelled by people.
    """
    suite = find_suite(suite_of(lake, run_id))
    labelling = labelling_of(suite.name)
    results = run_results(lake, suite, run_id, {}).collect()
    mine = {name: results[name].unique().implode() for name in ("prompt_hash",) if name in results.columns}
    tables = {suite.results.table: results, HUMAN_LABELS.table: lake.frame(HUMAN_LABELS).collect()}
    for contract in suite.details:
        rows = lake.frame(contract)
        if "prompt_hash" in contract.row.model_fields:
            rows = rows.filter(pl.col("prompt_hash").is_in(mine["prompt_hash"]))
        tables[contract.table] = rows.collect()
    return labelling.sheet(tables, size, SEED, form)


def import_labels(lake: Lake, suite_name: str, text: str, form: SheetFormat, labeller: str) -> Labelled:
    """Land the labels of a filled-in sheet; a person's later word on the same thing takes the earlier one's place.

    Raises UsageError for a suite without labelling, SourceError where the text is no sheet.
    """
    labels = named(lake, read_labels(suite_name, text, form, labeller, datetime.now(UTC)))
    return Labelled(land_labels(lake, labels).landed, labels.refused, labels.empty)


def read_labels(suite_name: str, text: str, form: SheetFormat, labeller: str, when: datetime) -> Labels:
    """What a filled-in sheet says; nothing lands. Raises as `import_labels` does."""
    return labelling_of(suite_name).read(text, form, labeller, when)


def land_labels(lake: Lake, labels: Labels) -> Published:
    """Land labels, each once however often it is repeated; those of `named`."""
    labels = named(lake, labels)
    batch = content_hash([{**row, "labelled_at": None} for row in labels.rows])
    return publish(lake, f"labels-{batch[:12]}", HUMAN_LABELS, list(labels.rows))


def named(lake: Lake, labels: Labels) -> Labels:
    """The labels with their samples' names, which sheets do not tell; those on nothing in the lake are refused."""
    names: dict[str, str] = {}
    for suite_name in {row["suite"] for row in labels.rows}:
        known = lake.frame(find_suite(suite_name).results).select("sample_hash", "sample_id")
        hashes = [row["sample_hash"] for row in labels.rows if row["suite"] == suite_name]
        names |= dict(known.filter(pl.col("sample_hash").is_in(hashes)).unique("sample_hash").collect().iter_rows())
    rows = [{**row, "sample_id": names[row["sample_hash"]]} for row in labels.rows if row["sample_hash"] in names]
    strangers = [
        Refusal(row["sample_id"], "this lake has no result of it: import the sheet where it was exported")
        for row in labels.rows
        if row["sample_hash"] not in names
    ]
    return replace(labels, rows=rows, refused=[*labels.refused, *strangers])


def labelling_of(suite_name: str) -> Labelling:
    """How people label a suite's results. Raises UsageError where they do not, or there is no such suite."""
    labelling = find_suite(suite_name).labelling
    if labelling is None:
        raise UsageError(f"the results of {suite_name} are not labelled through sheets")
    return labelling
