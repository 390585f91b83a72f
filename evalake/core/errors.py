"""The errors that users see: one sentence that says what, where, and what to do.

The command line prints an error as one line. It exits with 2 where the user has to change the input (options, names,
files, configuration, keys, SQL), and with 1 where the work failed.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import ClassVar


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Write the known names that a misspelt one resembles, as a question; empty where it resembles none."""
    near = get_close_matches(name, list(known), n=3)
    return f"; did you mean {' or '.join(near)}?" if near else ""


class EvalakeError(Exception):
    """Base of all domain errors."""

    exit_code: ClassVar[int] = 1


class InputError(EvalakeError):
    """The input is invalid."""

    exit_code = 2


class UsageError(InputError):
    """The command is wrong: an unknown suite or run, or options that exclude each other."""


class ConfigurationError(InputError):
    """The configuration file or the environment has an invalid value."""


class SuiteError(EvalakeError):
    """The code of a suite cannot be imported, or fails."""


class SourceError(InputError):
    """A dataset source is missing, unreadable, malformed or empty."""


class ContractError(EvalakeError):
    """Data breaks its contract, so that nothing is published."""


class SchemaMismatchError(ContractError):
    """A frame or a table does not have the columns and types of its contract."""


class LakeError(EvalakeError):
    """The lake cannot be read or written, or holds foreign files."""


class OlderLakeError(LakeError):
    """A table has the schema of an older evalake: migrate it first."""


class NewerLakeError(LakeError):
    """A table has the schema of a newer evalake."""


class MetricError(EvalakeError):
    """A metric cannot be computed from its input."""


class QueryError(InputError):
    """A SQL query was refused or failed."""


class ProviderError(InputError):
    """A model cannot be called: its provider is unknown, its key is missing, or no server answers."""


class MissingKeyError(ProviderError):
    """The key of a model is missing."""
