"""`evalake dataset show`: how a source is understood: mapping, samples, labels, duplicates, what is left out."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import parse_qsl

import typer

from evalake.cli.help import App, Group
from evalake.cli.options import LAKE, JsonOption, LakeOption
from evalake.core.errors import SourceError, UsageError
from evalake.core.redaction import visible

if TYPE_CHECKING:
    from evalake.sdk import Dataset, Suite
    from evalake.storage.lake import Lake

dataset = App(cls=Group, help="Look at a dataset before anything is asked.", no_args_is_help=True)
MOST_SHOWN = 5

GUESSES: Mapping[str, tuple[str, ...]] = {
    "input": ("input", "question", "prompt", "query", "text", "problem", "instruction", "command", "contract"),
    "target": ("target", "answer", "expected", "gold", "reference", "solution", "output", "ideal"),
    "sample_id": ("sample_id", "id", "uuid", "key"),
    "label": ("label", "class"),
    "category": ("category", "subject", "topic", "type", "task"),
}
"""The usual names of columns, by the field of a sample that they hold."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.add_typer(dataset, name="dataset")


@dataset.command("show")
def show(
    sources: Annotated[list[str], typer.Argument(help="Sources, as --dataset takes them.", metavar="SOURCE")],
    suite: Annotated[
        str | None, typer.Option(help="Read them as this suite does; default: as a table.", metavar="SUITE")
    ] = None,
    lake: LakeOption = LAKE,
    json: JsonOption = False,
) -> None:
    """Show the first samples, counts by label and category, duplicates, and which column became which field."""
    from evalake.cli import output as out
    from evalake.storage.lake import Lake

    read = list(_read(sources, suite, Lake(lake)))
    datasets = [each for each, _ in read]
    told = {"datasets": [_facts(each, mapping) for each, mapping in read], **_repeated(datasets)}
    if json:
        out.as_json(told)
        return
    for facts in told["datasets"]:
        _print(facts)
    for what in ("duplicates", "near_duplicates"):
        pairs = told[what]
        words = what.replace("_", "-")
        within = sum(each["within"] for each in pairs)
        out.line(f"{words}: {within} within a source, {len(pairs) - within} between sources")
        for each in pairs[:MOST_SHOWN]:
            out.line(f"  {each['one']} and {each['other']}" + (f" ({each['alike']:.0%})" if "alike" in each else ""))
    if not told["near_duplicates_looked_for"]:
        out.line("near-duplicates: not looked for, the samples are too many")


def _read(sources: Sequence[str], name: str | None, lake: "Lake") -> Iterator[tuple["Dataset", Mapping[str, str]]]:
    """Read each source, with the column of each field where it is read as a table."""
    from evalake.sdk.dataset import SampleTable
    from evalake.sdk.sources import expanded
    from evalake.tasks.extract import LAKE as OF_LAKE
    from evalake.tasks.extract import read_datasets, rows_of_lake

    if name is not None:
        found = _suite(name)
        for each in read_datasets(found, sources, lake):
            yield each, {}
        return
    for source in sources:
        if source == "starter":
            raise UsageError("each suite has its own `starter` samples: name one with --suite")
        for table in [rows_of_lake(source, lake)] if source.startswith(OF_LAKE) else expanded(source):
            columns, given = _guessed(table)
            yield SampleTable("dataset", columns)(table), columns | given


def _suite(name: str) -> "Suite":
    from evalake.cli.trust import is_path, suite_at
    from evalake.suites.registry import suite as find_suite

    return find_suite(suite_at(name) if is_path(name) else name)


def _guessed(source: str) -> tuple[dict[str, str], dict[str, str]]:
    """Guess the column of each field by its usual names; returns them, and those that the source names itself.

    Raises SourceError where no column can be the input.
    """
    from evalake.reports.wording import one_line
    from evalake.sdk.sources import columns_of, find_table

    path, mapping = find_table(source)
    known = columns_of(path, ())
    there = {name.casefold(): name for name in known}
    given = {field: column for field, column in parse_qsl(mapping) if "." not in field}
    columns = {
        field: there[name]
        for field, names in GUESSES.items()
        if field not in given and (name := next((each for each in names if each in there), None))
    }
    if known and "input" not in columns | given:
        some = one_line(", ".join(known), 300)
        raise SourceError(f"{source} has no column that is plainly the input ({some}): write {source}?input=COLUMN")
    return columns, given


def _facts(read: "Dataset", columns: Mapping[str, str]) -> dict[str, Any]:
    def counts(field: str) -> dict[str, int]:
        found = Counter(value for each in read.samples if (value := getattr(each, field)) is not None)
        return dict(found.most_common())

    return {
        "name": read.name,
        "samples": len(read.samples),
        "mapping": dict(columns),
        "notes": list(read.notes),
        "labels": counts("label"),
        "categories": counts("category"),
        "left_out": dict(Counter(each.reason for each in read.skipped).most_common()),
        "first": [
            {"sample_id": each.sample_id, "input": each.input, "target": each.target}
            for each in read.samples[:MOST_SHOWN]
        ],
    }


def _repeated(datasets: Sequence["Dataset"]) -> dict[str, Any]:
    """List duplicates and near-duplicates of all sources, as pairs."""
    from evalake.sdk.dataset import MOST, equal, near

    places = [(each.name, sample) for each in datasets for sample in each.samples]
    texts = [sample.input for _, sample in places]

    def pair(one: int, other: int, **more: Any) -> dict[str, Any]:
        (first, a), (second, b) = places[one], places[other]
        named = {"one": f"{first}/{a.sample_id}", "other": f"{second}/{b.sample_id}"}
        return {**named, "within": first == second, **more}

    looked_for = len(texts) <= MOST
    return {
        "duplicates": [pair(group[0], other) for group in equal(texts) for other in group[1:]],
        "near_duplicates": [pair(a, b, alike=share) for a, b, share in near(texts)] if looked_for else [],
        "near_duplicates_looked_for": looked_for,
    }


def _print(facts: Mapping[str, Any]) -> None:
    from evalake.cli import output as out

    out.line(f"{facts['name']}: {facts['samples']} samples")
    for note in facts["notes"]:
        out.line(f"  {note}")
    if facts["mapping"]:
        told = ", ".join(f"{field} = {column}" for field, column in facts["mapping"].items())
        out.line(f"  mapping: {told} (other columns: ?FIELD=COLUMN)")
    for what in ("labels", "categories", "left_out"):
        if facts[what]:
            counted = ", ".join(f"{name} {count}" for name, count in list(facts[what].items())[:20])
            out.line(f"  {what.replace('_', ' ')}: {counted}")
    for each in facts["first"]:
        text = " ".join(each["input"].split())
        shown = text if len(text) <= 100 else f"{text[:99]}…"
        out.line(visible(f"  {each['sample_id']}: {shown}" + (f" -> {each['target']}" if each["target"] else "")))
