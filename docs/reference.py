"""Generates pages of the site: from help texts, from contracts, and from the pages at the root of the repository."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from evalake.cli.help import Command
from evalake.cli.main import app
from evalake.contracts.contract import Contract
from evalake.storage.sql.catalogue import ColumnEntry, Entry, catalogue
from evalake.suites.registry import all_contracts

FOLDER = "reference"
ROOT_PAGES: Mapping[str, str] = {
    f"{FOLDER}/architecture": "ARCHITECTURE.md",
    f"{FOLDER}/changelog": "CHANGELOG.md",
    f"{FOLDER}/contributing": "CONTRIBUTING.md",
}

COMMANDS = """# Commands

Made from the help texts; `evalake COMMAND --help` prints the same. Before or after every command, `--debug` shows
tracebacks, `--verbose` the seconds of each phase. `--trust-folder` lets `evalake.toml` of the working directory send
keys and name code to run.
"""
TABLES = """# Tables and views

Made from the contracts; `evalake tables --describe` prints the same. A table is the Delta table `<lake>/<name>`. Types
are SQL's, and times are in UTC. Columns marked *key* identify a row, which lands once. Columns marked *null* may be
unknown; all others always hold a value. A row that breaks a rule goes to the table `quarantine`, unless
the rule only warns.
"""


def root_page(name: str) -> str | None:
    """Find the page of the site that shows a file at the repository's root."""
    return next((page for page, file in ROOT_PAGES.items() if file == name), None)


def write(folder: Path) -> None:
    """Write the generated pages; Sphinx reads only those again that have changed."""
    folder.mkdir(exist_ok=True)
    root = folder.parents[1]
    pages = {"commands": commands(), "tables": tables(all_contracts())} | {
        Path(page).name: (root / file).read_text(encoding="utf-8") for page, file in ROOT_PAGES.items()
    }
    for name, text in pages.items():
        file = folder / f"{name}.md"
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")


def commands() -> str:
    """Describe every command with its arguments and options."""
    return COMMANDS + "".join(f"\n{part}\n" for part in _command(typer.main.get_command(app), "evalake"))


def tables(contracts: Sequence[Contract]) -> str:
    """Describe every table and view with its columns and rules."""
    return TABLES + "".join(f"\n{part}\n" for entry in catalogue(contracts) for part in _entry(entry))


def _command(command: Any, name: str) -> Iterator[str]:
    if not isinstance(command, Command):
        for word, part in command.commands.items():
            yield from _command(part, f"{name} {word}")
        return
    context = typer.Context(command, info_name=name)
    yield f"## {name}"
    yield _text(command.help or "")
    yield f"    {' '.join([name, *command.collect_usage_pieces(context)])}"
    for title, parameters in command.described_parameters(context).items():
        rows = [(f"`{written}`", _text(meaning)) for written, meaning in parameters if "--help" not in written]
        if rows:
            yield _table((title, ""), rows)


def _entry(entry: Entry) -> Iterator[str]:
    yield f"## {entry.name}"
    yield _text(entry.description if entry.kind == "table" else f"View: {entry.description}")
    if entry.rules:
        yield "\n".join(f"* {_text(rule)}" for rule in entry.rules)
    yield _table(("Column", "Type", "Meaning", "Rules"), list(map(_column, entry.columns)))


def _column(column: ColumnEntry) -> tuple[str, str, str, str]:
    marks = [f" *{mark}*" for mark, holds in (("key", column.key), ("null", column.nullable)) if holds]
    rules = [rule.removeprefix(column.column).strip() for rule in column.rules]
    told = _text("; ".join(rule for rule in rules if rule != "is not null"))
    return f"`{column.column}`", column.type + "".join(marks), _text(column.description), told


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))


def _text(text: str) -> str:
    """Escape what Markdown takes for marks; words in backquotes stay."""
    words = " ".join(text.split()).replace("|", "\\|").split("`")
    plain = [word.translate({ord(mark): f"\\{mark}" for mark in "*_<>[]"}) for word in words[::2]]
    return "`".join(word for pair in zip(plain, [*words[1::2], ""], strict=False) for word in pair).removesuffix("`")
