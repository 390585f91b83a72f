"""`evalake init`: writes a project that uses an installed evalake, without a fork of it."""

import os
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from evalake.cli.suite import TEMPLATES
from evalake.cli.terminal import say
from evalake.core.errors import EvalakeError, UsageError
from evalake.core.files import make_folder, write_file

TEMPLATE = Path(__file__).with_name("project")
SUITE = Path("my_suites", "questions")
RENAMED = {"gitignore": ".gitignore"}  # packaging tools would apply it


def init(
    folder: Annotated[Path, typer.Argument(help="The folder of the project; created if missing.", metavar="DIR")],
) -> None:
    """Write a project: settings, deployments, a Makefile, and a first suite."""
    from evalake.core.folder_trust import remember

    files = {folder / _place(file): file for file in sorted(TEMPLATE.rglob("*")) if _is_template(file)}
    files |= {folder / SUITE / file.name: file for file in sorted((TEMPLATES / "exact").iterdir())}
    if there := next((target for target in files if os.path.lexists(target)), None):
        raise UsageError(f"{there} exists, and init overwrites no file: name another folder")
    try:
        for target, file in files.items():
            for parent in reversed(target.relative_to(folder).parents):
                make_folder(folder / parent)
            write_file(target, file.read_bytes())
    except OSError as error:
        raise EvalakeError(f"cannot write {error.filename} ({error.strerror}): name another folder") from error
    remember(folder, trusted=True)  # every file in it is evalake's own, until one changes
    for target in files:
        typer.echo(target)
    where = quote(str(folder))
    say(f"next: cd {where} && evalake run questions (or make -C {where} run); docs/first-suite.md goes on")


def _is_template(file: Path) -> bool:
    return file.is_file() and "__pycache__" not in file.parts


def _place(file: Path) -> Path:
    place = file.relative_to(TEMPLATE)
    return place.with_name(RENAMED.get(place.name, place.name))
