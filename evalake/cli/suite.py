"""`evalake init`, `suite` and `dataset`: write a project or a suite, and look at a suite or a dataset."""

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import parse_qsl

import typer

from evalake.cli import options
from evalake.cli import output as out
from evalake.cli.configuration import require_trusted, suite_name
from evalake.cli.help import App, Group
from evalake.cli.terminal import say
from evalake.core.errors import EvalakeError, SourceError, SuiteError, UsageError
from evalake.core.files import make_folder, write_file
from evalake.core.folder_trust import holds_no_code, is_trusted, kept, remember
from evalake.core.redaction import visible

if TYPE_CHECKING:
    from evalake.sdk import Dataset
    from evalake.storage.lake import Lake

app = App()
suite = App(cls=Group, help="Write a suite as a file, and check one.", no_args_is_help=True)
app.add_typer(suite, name="suite")
dataset = App(cls=Group, help="Look at a dataset before anything is asked.", no_args_is_help=True)
app.add_typer(dataset, name="dataset")
TEMPLATE = Path(__file__).with_name("project")
TEMPLATES = Path(__file__).with_name("suites")
SUITE = Path("my_suites", "questions")
RENAMED = {"gitignore": ".gitignore"}  # packaging tools would apply it
MOST_SHOWN = 5
GUESSES: Mapping[str, tuple[str, ...]] = {
    "input": ("input", "question", "prompt", "query", "text", "problem", "instruction", "command", "contract"),
    "target": ("target", "answer", "expected", "gold", "reference", "solution", "output", "ideal"),
    "sample_id": ("sample_id", "id", "uuid", "key"),
    "label": ("label", "class"),
    "category": ("category", "subject", "topic", "type", "task"),
}
"""The usual names of columns, by the field of a sample that they hold."""


@app.command("init")
def init(
    named: Annotated[str, typer.Argument(help="The folder of the project; created if missing.", metavar="DIR")],
) -> None:
    """Write a project: settings, deployments, a Makefile, and a first suite."""
    if not named.strip():
        raise UsageError("the folder has no name: name one, or . for this one")
    folder = Path(named)
    templates = (file for file in sorted(TEMPLATE.rglob("*")) if file.is_file() and "__pycache__" not in file.parts)
    files = {folder / _place(file): file for file in templates}
    files |= {folder / SUITE / file.name: file for file in sorted((TEMPLATES / "exact").iterdir())}
    if there := next((target for target in files if os.path.lexists(target)), None):
        raise UsageError(f"{there} exists, and init overwrites no file: name another folder")
    where, is_own = quote(str(folder)), holds_no_code(folder) or is_trusted(folder)
    _write(folder, files)
    if is_own:  # every further file in it is evalake's own, until one changes
        remember(folder, trusted=True)
    else:
        say(f"{folder.resolve()} held files of code or settings: if you trust them, run `evalake trust {where}`")
    say(f"next: cd {where} && evalake run questions (or make -C {where} run); `evalake suite new` writes another")


def _place(file: Path) -> Path:
    place = file.relative_to(TEMPLATE)
    return place.with_name(RENAMED.get(place.name, place.name))


def _write(folder: Path, files: Mapping[Path, Path]) -> None:
    """Write copies of files, by their places in a folder, and print these. Raises EvalakeError where it cannot."""
    try:
        for target, file in files.items():
            for parent in reversed(target.relative_to(folder).parents):
                make_folder(folder / parent)
            write_file(target, file.read_bytes())
    except OSError as error:
        raise EvalakeError(f"cannot write {error.filename} ({error.strerror}): name another folder") from error
    for target in files:
        typer.echo(target)


class SuiteKind(StrEnum):
    """What a new suite begins as."""

    choice = "choice"
    exact = "exact"
    judge = "judge"


@suite.command("new")
def new(
    name: Annotated[str, typer.Argument(help="Its name: a-z, 0-9 and _.", metavar="NAME")],
    kind: Annotated[
        SuiteKind, typer.Option(help="The template of the suite.", metavar="|".join(SuiteKind))
    ] = SuiteKind.exact,
    folder: Annotated[
        Path | None, typer.Option("--in", help="The folder of suites; default: my_suites, or else here.", metavar="DIR")
    ] = None,
) -> None:
    """Write a suite to begin with: a folder with suite.toml and a small dataset."""
    from evalake.suites.declared.parts import NAME
    from evalake.suites.places import places

    if not re.fullmatch(NAME, name):
        raise UsageError(f"{name!r} is no name of a suite: write it in a-z, 0-9 and _, beginning with a letter")
    if other := places().get(name):
        raise UsageError(f"there is a suite {name} already, {other.description}: take another name")
    usual = Path("my_suites")
    place = (folder or (usual if usual.is_dir() else Path())) / name
    if place.exists():
        raise UsageError(f"{place} is there already: take another name")
    with kept(Path.cwd()):
        _write(place, {place / file.name: file for file in sorted((TEMPLATES / kind).iterdir())})
    say(f"next: evalake suite check {quote(str(place / 'suite.toml'))}")


@suite.command("check")
def check(
    file: Annotated[Path, typer.Argument(help="The suite's file, or its folder.", metavar="FILE")],
) -> None:
    """Name every mistake of a suite's file by line and field; show one prompt, and how the first sample is scored."""
    from evalake.suites.declared.check import lines_of
    from evalake.suites.declared.file import FILES, MistakesError

    found = next((file / name for name in FILES if (file / name).is_file()), file) if file.is_dir() else file
    if not found.is_file():
        raise UsageError(f"there is no suite's file {found}: give the path of a suite.toml, or of its folder")
    require_trusted(found)  # a check reads its dataset, and runs its scorers
    try:
        for line in lines_of(found):
            typer.echo(line)
    except MistakesError as error:
        for mistake in error.mistakes:
            say(mistake)
        raise typer.Exit(1) from error
    except SuiteError as error:
        say(str(error))
        raise typer.Exit(1) from error


@dataset.command("show")
def show(
    sources: Annotated[list[str], typer.Argument(help="Sources, as --dataset takes them.", metavar="SOURCE")],
    suite: Annotated[
        str | None, typer.Option(help="Read them as this suite does; default: as a table.", metavar="SUITE")
    ] = None,
    lake: options.Lake = options.LAKE,
    json: options.Json = False,
) -> None:
    """Show the first samples, counts by label and category, duplicates, and which column became which field."""
    read = list(_read(sources, suite, options.open_lake(lake)))
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


def _read(sources: Sequence[str], name: str | None, lake: "Lake") -> "Iterator[tuple[Dataset, Mapping[str, str]]]":
    """Read each source, with the column of each field where it is read as a table."""
    from evalake.sdk.dataset import SampleTable
    from evalake.sdk.sources import expanded
    from evalake.suites.registry import suite
    from evalake.tasks.extract import LAKE, read_datasets, rows_of_lake

    if name is not None:
        found = suite(suite_name(name))
        for each in read_datasets(found, sources, lake):
            yield each, {}
        return
    for source in sources:
        if source == "starter":
            raise UsageError("each suite has its own `starter` samples: name one with --suite")
        for table in [rows_of_lake(source, lake)] if source.startswith(LAKE) else expanded(source):
            columns, given = _guessed(table)
            yield SampleTable("dataset", columns)(table), columns | given


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


def _repeated(datasets: "Sequence[Dataset]") -> dict[str, Any]:
    """List duplicates and near-duplicates of all sources, as pairs."""
    from evalake.sdk.dataset import MOST, equal, near

    places = [(dataset, sample) for dataset in datasets for sample in dataset.samples]
    texts = [sample.input for _, sample in places]

    def pair(one: int, other: int, **more: Any) -> dict[str, Any]:
        (first, a), (second, b) = places[one], places[other]
        named = {"one": f"{first.name}/{a.sample_id}", "other": f"{second.name}/{b.sample_id}"}
        return {**named, "within": first is second, **more}

    looked_for = len(texts) <= MOST
    return {
        "duplicates": [pair(group[0], other) for group in equal(texts) for other in group[1:]],
        "near_duplicates": [pair(a, b, alike=share) for a, b, share in near(texts)] if looked_for else [],
        "near_duplicates_looked_for": looked_for,
    }


def _print(facts: Mapping[str, Any]) -> None:
    from evalake.reports.wording import count_of

    out.line(f"{facts['name']}: {count_of(facts['samples'], 'sample')}")
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
