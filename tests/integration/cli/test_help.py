"""Help names what a user writes: every option and argument of every command, on 80 columns."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from evalake.cli.help import LONGEST
from evalake.cli.main import COMMANDS, app
from tests.integration.cli.command import evalake_here

OF_PREFECT = "prefect"  # whose help is Prefect's own


def _help(folder: Path, *command: str) -> Iterator[tuple[str, str]]:
    """Help of a command, and of those below it."""
    done = evalake_here(*command, "--help", folder=folder, COLUMNS="80")
    assert done.returncode == 0, done.stderr
    yield " ".join(command), done.stdout
    listed = done.stdout.partition("\n  -h, --help")[2] if not command else done.stdout.partition("\nCommands:\n")[2]
    for name in re.findall(r"(?m)^  ([a-z][a-z-]*)  ", listed):
        if name != OF_PREFECT:
            yield from _help(folder, *command, name)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Help of every command."""
    return dict(_help(tmp_path_factory.mktemp("help")))


def test_no_type_of_python_and_no_formula_stands_for_a_value(shown: dict[str, str]) -> None:
    assert {"", "run", "label import", "snapshots verify"} < set(shown)
    typed = re.compile(r"<[a-z ]+>|\[x|x[<>]=|\b(?:INTEGER|FLOAT|PATH|BOOLEAN)\b(?= {2})")
    assert {name: found for name, text in shown.items() if (found := typed.findall(text))} == {}
    assert "at least 1" in " ".join(shown["show"].split())


def test_every_line_has_room_and_a_long_example_goes_on_as_a_shell_takes_it(shown: dict[str, str]) -> None:
    assert [line for text in shown.values() for line in text.splitlines() if len(line) > 80] == []
    assert "--dry-run" in shown["run"].partition("\nExamples:\n")[2].replace(" \\\n ", "").splitlines()[-1]


def test_commands_are_listed_with_whole_sentences(shown: dict[str, str]) -> None:
    listed = shown[""].partition("\nEvery day:\n")[2]
    assert "..." not in listed
    commands: Any = typer.main.get_command(app)
    assert {name: each.get_short_help_str(LONGEST) for name, each in commands.commands.items()} == COMMANDS
    assert set(shown) - {""} >= {name for name in COMMANDS if name != OF_PREFECT}
    assert "the ledger answers known calls." in " ".join(listed.split())
