"""Label: sheets for people to fill in, drawn from a run's results, and their words back into `human_labels`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl

from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import CALLS, HUMAN_LABELS, SAMPLES
from evalake.contracts.tables.people import answered
from evalake.core.errors import SourceError, UsageError
from evalake.core.hashing import content_hash
from evalake.metrics.agreement import agreement_table
from evalake.sdk import Label, Labelling, Labels, Refusal, SheetFormat, Suite
from evalake.sdk.people import decisions, pairs_with_people
from evalake.sdk.sheets import NEEDED, Line, columns, lines_to_fill_in, read_labels, read_sheet, write_sheet
from evalake.storage.lake import Lake
from evalake.storage.landing import Landed, land
from evalake.storage.ledger import replies
from evalake.suites.registry import suite as find_suite
from evalake.tasks.clusters import run_samples, twins_of, with_clusters, with_twins
from evalake.tasks.measure import run_results
from evalake.tasks.publish import Published, publish
from evalake.tasks.runtime.context import SEED
from evalake.tasks.runtime.runs import as_scored, run_row


@dataclass(frozen=True, slots=True)
class Labelled:
    """What an import of labels did."""

    landed: Landed
    refused: Sequence[Refusal]
    empty: int


def suite_of(lake: Lake, run_id: str) -> str:
    """Look up the suite of a run. Raises UsageError where there is no such run."""
    return str(run_row(lake, run_id)["suite"])


def label_sheet(lake: Lake, run_id: str, size: int, form: SheetFormat) -> str:
    """Write the sheet of `lines_to_label`. Raises as that does."""
    labelling = labelling_of(suite_of(lake, run_id), lake)
    return write_sheet(lines_to_label(lake, run_id, size), columns(labelling), form)


def lines_to_label(lake: Lake, run_id: str, size: int) -> Sequence[Line]:
    """Draw at most `size` results of the run that nobody has labelled, the informative ones favoured.

    Raises UsageError where there is no such run, or its suite's results are not labelled by people.
    """
    suite = find_suite(suite_of(lake, run_id), lake)
    labelling = labelling_of(suite.name, lake)
    tables = tables_of(lake, run_id)
    results = tables[suite.results.table]
    return lines_to_fill_in(labelling, results, tables | material_of(lake, results), size, SEED)


def material_of(lake: Lake, results: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Read what results are about: their samples, and the replies to their first calls."""
    samples = lake.frame(SAMPLES).filter(pl.col("sample_hash").is_in(results["sample_hash"].unique().implode()))
    calls = lake.frame(CALLS).filter(pl.col("prompt_hash").is_in(results["prompt_hash"].unique().implode()))
    return {SAMPLES.table: samples.unique("sample_hash").collect(), CALLS.table: replies(calls).collect()}


def judges_and_people(lake: Lake, run_id: str) -> pl.DataFrame:
    """Measure how far each judge of a run decided as people did, decision by decision, over all of its models.

    Where models are judged by rules, the models and the dataset's labels are measured instead.
    Raises UsageError where there is no such run, or nobody labelled anything of it.
    """
    suite = find_suite(suite_of(lake, run_id), lake)
    labelling = labelling_of(suite.name, lake)
    tables = tables_of(lake, run_id)
    if labelling.compare is not None:
        pairs = labelling.compare(tables)
    else:
        pairs = pairs_with_people(tables[suite.results.table], tables[HUMAN_LABELS.table], labelling)
    if pairs.is_empty():
        raise UsageError(f"nobody has labelled a result of run {run_id}: `evalake label export {run_id}` begins it")
    return agreement_table(pairs, labelling.decisions or decisions(labelling))


def tables_of(lake: Lake, run_id: str) -> dict[str, pl.DataFrame]:
    """Read the run's rows of every table of its suite, by the scorer that it was measured with, and all labels."""
    suite = as_scored(lake, run_row(lake, run_id))
    twins = twins_of(with_twins(lake, suite, run_id, {}))
    samples = run_samples(lake, suite, run_id, {})
    results = with_clusters(run_results(lake, suite, run_id, {}), samples, twins).collect()
    tables = {suite.results.table: results, HUMAN_LABELS.table: lake.frame(HUMAN_LABELS).collect()}
    for contract in suite.scoring.extra_tables:
        rows = lake.frame(contract)
        if shared := [name for name in (*suite.results.key, "reply_revision") if name in contract.column]:
            rows = rows.join(results.lazy().select(shared).unique(), on=shared, how="semi")
        tables[contract.table] = rows.collect()
    return tables


def import_labels(lake: Lake, suite_name: str, text: str, form: SheetFormat, annotator: str) -> Labelled:
    """Land the labels of a filled-in sheet; a person's later answer on the same thing takes the earlier one's place.

    Raises UsageError for a suite without labelling, SourceError where the text is no sheet, or has no answers.
    """
    labelling = labelling_of(suite_name, lake)
    lines = list(read_sheet(text, form, NEEDED))
    headings = [question.heading for question in labelling.questions]
    read = [line for _, line in lines if not isinstance(line, str)]
    if read and not any({*headings} & line.keys() for line in read):
        raise SourceError(f"this sheet has no column of answers: it needs one of {', '.join(headings)}")
    labels = named(lake, read_labels(labelling, lines, annotator, datetime.now(UTC)))
    return Labelled(land_labels(lake, labels).landed, labels.refused, labels.empty)


def land_labels(lake: Lake, labels: Labels, *, recorded: bool = False) -> Published:
    """Land the labels that `named` returns, each once however often it is repeated; a repetition keeps its time.

    Those that were `recorded` elsewhere have their own times, and the latest counts. Others are said now.
    """
    labels = named(lake, labels)
    batch = content_hash([{**row, "labelled_at": None} for row in labels.rows])
    there = words_there(lake, pl.col("label_id").is_in([row["label_id"] for row in labels.rows]))
    rows = []
    for row in labels.rows:
        before = there.get(row["label_id"])
        is_repeated = before is not None and before[:3] == (row["answer"], row["score"], row["note"])
        when = row["labelled_at"] if recorded else after(before, row["labelled_at"])
        rows.append({**row, "labelled_at": before[3] if before is not None and is_repeated else when})
    return publish(lake, f"labels-{batch[:12]}", HUMAN_LABELS, rows)


def after(before: Sequence[Any] | None, now: datetime) -> datetime:
    """Return the time of a word said now in the place of one of `words_there`, whose clock may be ahead of this one."""
    return now if before is None else max(now, before[3] + timedelta(microseconds=1))


def words_there(lake: Lake, which: pl.Expr) -> Mapping[str, tuple[Any, ...]]:
    """Read answer, score, note and time of labels, by their ids."""
    said = ("answer", "score", "note", "labelled_at")
    rows = lake.frame(HUMAN_LABELS).filter(which).select("label_id", *said).collect()
    return {label_id: tuple(known) for label_id, *known in rows.iter_rows()}


def named(lake: Lake, labels: Labels) -> Labels:
    """Add the samples' names to labels, for sheets do not have them; labels on nothing in the lake are refused."""
    names: dict[str, str] = {}
    for suite_name in {row["suite"] for row in labels.rows}:
        known = lake.frame(find_suite(suite_name, lake).results).select("sample_hash", "sample_id")
        hashes = [row["sample_hash"] for row in labels.rows if row["suite"] == suite_name]
        names |= dict(known.filter(pl.col("sample_hash").is_in(hashes)).unique("sample_hash").collect().iter_rows())
    rows = [{**row, "sample_id": names[row["sample_hash"]]} for row in labels.rows if row["sample_hash"] in names]
    strangers = [
        Refusal(row["sample_id"], "this lake has no result of it: import the sheet where it was exported")
        for row in labels.rows
        if row["sample_hash"] not in names
    ]
    return replace(labels, rows=rows, refused=[*labels.refused, *strangers])


def labelling_of(suite_name: str, lake: Lake) -> Labelling:
    """Look up how people label a suite's results. Raises UsageError where they do not, or there is no such suite."""
    labelling = find_suite(suite_name, lake).people
    if labelling is None:
        raise UsageError(f"the results of {suite_name} are not labelled through sheets")
    return labelling


def word_on(
    suite: Suite, sample_id: str, sample_hash: str, model: str, annotator: str, at: datetime, note: str | None
) -> dict[str, Any]:
    """Begin a person's labels about a sample, whatever its answer."""
    return {
        "label_id": content_hash([suite.name, sample_hash, annotator]),
        "suite": suite.name,
        **{"sample_id": sample_id, "sample_hash": sample_hash, "model": model, "replicate": 0},
        **{"annotator": annotator, "labelled_at": at, "note": note},
        **dict.fromkeys(("judge", "prompt_type", "finding_id", "inclusion_probability", "draw")),
    }


def land_given(lake: Lake, suite: Suite, labels: Sequence[Label], hashes: Mapping[str, str]) -> int:
    """Land what a source tells that people said of samples, by the samples' hashes; returns how many are new.

    A label without a time is of now, and lands where it says something else than the one that is there.
    """
    model, now = suite.conversation.default_models[0], datetime.now(UTC)
    there = words_there(lake, pl.col("suite") == suite.name)
    rows = []
    for label in labels:
        if (sample_hash := hashes.get(label.sample_id)) is None:
            continue
        word = word_on(suite, label.sample_id, sample_hash, model, label.annotator, label.at or now, label.note)
        (row,) = answered(word, {label.question: label.answer})
        before = there.get(row["label_id"])
        if before is None or before[:3] != (row["answer"], row["score"], row["note"]):
            late = before is not None and before[3] >= row["labelled_at"]
            rows.append({**row, "labelled_at": after(before, now)} if late else row)
    if rows:
        land(lake, HUMAN_LABELS, conform(rows, HUMAN_LABELS))
    return len(rows)
