"""The configuration of a command, whether a folder is trusted (`evalake trust`), and command lines to copy."""

import os
import shlex
import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from evalake.cli.help import App
from evalake.cli.options import LAKE
from evalake.cli.terminal import say
from evalake.core import folder_trust
from evalake.core.configuration import (
    CONFIGURATION_FILE,
    FILE_VARIABLE,
    HOME_VARIABLE,
    SUITE_SUFFIXES,
    TRUST_OPTION,
    Configuration,
    read_configuration,
    suite_paths,
)
from evalake.core.errors import ConfigurationError, UsageError
from evalake.core.files import cache_folder, is_ours, make_private
from evalake.core.redaction import redact

app = App()
_ASKS_NOTHING = ("", "init", "trust", "suite")


def trust_folder() -> None:
    """Trust `evalake.toml` of the working directory, in this process and its children."""
    if (here := Path(CONFIGURATION_FILE).absolute()).exists():
        os.environ[FILE_VARIABLE] = str(here)


def command(*words: str, **options: str | None) -> str:
    """Write a command line to copy, with the typed path of evalake and the options that differ from the defaults."""
    given = [(name, value) for name, value in options.items() if value and (name, value) != ("lake", LAKE)]
    program = "evalake" if shutil.which("evalake") else sys.argv[0]
    return shlex.join([program, *words, *(part for name, value in given for part in (f"--{name}", value))])


def trusting(command: str) -> str:
    """Add --trust-folder to a command line if this command has it."""
    return f"{command} {TRUST_OPTION}" if TRUST_OPTION in sys.argv else command


def read(file: Path | None) -> Configuration:
    """Read the configuration, and print the source and the servers of an untrusted one.

    A file that is named here is the user's own for all that the command does and starts: its suites are found, too.
    """
    configuration = read_configuration(file)
    if file is not None:
        os.environ[FILE_VARIABLE] = str(file.absolute())
    if configuration.trusted:
        return configuration
    bases = {name: options.api_base for name, options in configuration.models.items() if options.api_base is not None}
    line = f"settings are those of {configuration.distrusted_file} in this folder"
    if bases:
        line += f", which asks models here (your keys go to their providers only, unless you give {TRUST_OPTION}):"
    say(line)
    for name, base in bases.items():
        say(f"  {name}: {redact(base)}")
    return configuration


@app.command("trust")
def trust(
    folder: Annotated[Path, typer.Argument(help="The folder.", metavar="DIR")] = Path(),
    forget: Annotated[bool, typer.Option("--forget", help="Trust it no more.")] = False,
) -> None:
    """Trust a folder: its evalake.toml and its suites may run as you, until one of its files changes."""
    if not folder.is_dir():
        raise UsageError(f"there is no folder {folder}")
    if forget:
        folder_trust.forget(folder)
        say(f"{folder.resolve()} is not trusted")
        return
    folder_trust.remember(folder, trusted=True)
    say(f"{folder.resolve()} is trusted until one of its Python, TOML or YAML files changes")


def meet_folder(command: str) -> None:
    """Take the working directory's settings as the user's own where the user trusts it; at a terminal, ask once."""
    here = Path.cwd()
    for file in folder_trust.suites_of(here):
        if folder_trust.is_covered(file.parent):
            _add(file)
    home = os.environ.get(HOME_VARIABLE)
    named = os.environ.get(FILE_VARIABLE) or any(word.partition("=")[0] == "--config" for word in sys.argv)
    if command in _ASKS_NOTHING or named or not Path(CONFIGURATION_FILE).exists():
        return
    if home and Path(home).resolve() == here:
        return
    what = f"{CONFIGURATION_FILE} of {here} names settings or suites that run as you"
    if folder_trust.is_trusted(here) or (_needs_trust() and _trusts(here, what)):
        _require_trusted_elsewhere(here)
        trust_folder()
        read_no_foreign_bytecode()


def suite_name(path: str) -> str:
    """Return the name of a suite, also of one that a command was given by the path of its file; later ones know it.

    Raises UsageError where there is no such file, or the user does not trust its folder.
    """
    if not path.endswith(SUITE_SUFFIXES):
        return path
    from evalake.suites.declared.file import read_suite_file

    file = Path(path).resolve()
    if not file.is_file():
        raise UsageError(f"there is no suite {path}: name a suite, or a file that declares one")
    require_trusted(file)
    suite = read_suite_file(file)
    for note in suite.notes:
        say(note)
    _add(file)
    folder_trust.remember_suite(Path.cwd(), file)
    read_no_foreign_bytecode()
    return suite.called


def require_trusted(file: Path) -> None:
    """Require that the user trusts a suite's file, or a folder of suites, or names it in a configuration of their own.

    Raises UsageError where the user does not.
    """
    file = file.resolve()
    if TRUST_OPTION in sys.argv or any(file.is_relative_to(each) for each in suite_paths()):
        return
    folder = file if file.is_dir() else file.parent
    if not _trusts(folder, f"{file} holds code to run, and says which files are sent"):
        raise UsageError(
            f"{folder} is not trusted, or has changed since: if you trust it, run "
            f"`evalake trust {folder}`, or give {TRUST_OPTION}"
        )


def _require_trusted_elsewhere(here: Path) -> None:
    """Require trust in each entry of `suite_paths` outside of this folder, which its own trust does not cover."""
    with suppress(ConfigurationError):  # each reader of the file says why
        for entry in read_configuration(here / CONFIGURATION_FILE).suite_paths:
            place = (here / entry.expanduser()).resolve()
            if place.exists() and not place.is_relative_to(here):
                require_trusted(place)


def add_given() -> None:
    """Let this command, told to trust its folder, find the suites that commands here were given by path."""
    for file in folder_trust.suites_of(Path.cwd()):
        _add(file)


def read_no_foreign_bytecode() -> None:
    """Keep byte code in the user's own cache, or none: trust in a folder does not cover its `__pycache__`."""
    kept = cache_folder() / "bytecode"
    try:
        make_private(kept)
        own = is_ours(kept) and is_ours(kept.parent)
    except OSError:
        own = False
    sys.pycache_prefix = str(kept) if own else os.devnull  # below which nothing can be


def _add(file: Path) -> None:
    from evalake.suites.places import FILES_VARIABLE

    known = [name for name in os.environ.get(FILES_VARIABLE, "").split(os.pathsep) if name]
    os.environ[FILES_VARIABLE] = os.pathsep.join(dict.fromkeys([*known, str(file)]))


def _needs_trust() -> bool:
    """Tell whether the working directory's settings say what only trusted ones may."""
    try:
        read_configuration()
    except ConfigurationError:
        return True
    return False


def _trusts(folder: Path, what: str) -> bool:
    if folder_trust.is_covered(folder):
        return True
    changed = folder_trust.was_trusted(folder)
    if folder_trust.is_refused(folder):
        return False
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        if changed:
            say(f"{folder} has changed since you trusted it: look at it, and run `evalake trust` again")
        return False
    said = typer.confirm(f"{what}{', and it has changed' if changed else ''}. Trust this folder?", err=True)
    folder_trust.remember(folder, trusted=said)
    return said
