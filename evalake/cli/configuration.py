"""The configuration of a command, and command lines for the user to copy."""

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from evalake.cli.options import LAKE
from evalake.cli.terminal import say
from evalake.core.configuration import CONFIGURATION_FILE, FILE_VARIABLE, TRUST_OPTION, read_configuration
from evalake.core.redaction import redact

if TYPE_CHECKING:
    from evalake.core.configuration import Configuration


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


def read(file: Path | None) -> "Configuration":
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
