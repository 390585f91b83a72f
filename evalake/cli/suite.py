"""`evalake suite`: write a suite's file, and look at one: its mistakes, a prompt, and how a sample is scored."""

from enum import StrEnum
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from evalake.cli.help import App, Group
from evalake.cli.terminal import say
from evalake.core.errors import EvalakeError, SuiteError, UsageError
from evalake.core.files import make_folder, write_file

suite = App(cls=Group, help="Write a suite as a file, and check one.", no_args_is_help=True)
TEMPLATES = Path(__file__).with_name("suites")


class SuiteKind(StrEnum):
    """What a new suite begins as."""

    choice = "choice"
    exact = "exact"
    judge = "judge"


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(suite, name="suite")


@suite.command("new")
def new(
    name: Annotated[str, typer.Argument(help="Its name: a-z, 0-9 and _.", metavar="NAME")],
    kind: Annotated[SuiteKind, typer.Option(help="What it begins as.", metavar="|".join(SuiteKind))] = SuiteKind.exact,
    folder: Annotated[
        Path | None, typer.Option("--in", help="The folder of suites; default: my_suites, or else here.", metavar="DIR")
    ] = None,
) -> None:
    """Write a suite to begin with: a folder with suite.toml and a small dataset."""
    import re

    from evalake.core.folder_trust import is_trusted, remember
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
    here = Path.cwd()
    trusted = is_trusted(here)
    try:
        make_folder(place)
        for file in sorted((TEMPLATES / kind).iterdir()):
            write_file(place / file.name, file.read_bytes())
            typer.echo(place / file.name)
    except OSError as error:
        raise EvalakeError(f"cannot write {error.filename} ({error.strerror}): name another folder") from error
    if trusted:  # it holds what it held, and files of evalake's own
        remember(here, trusted=True)
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
