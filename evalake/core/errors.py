"""Every error a user may meet: one clear sentence that says what, where, and what to do.

The command line prints it as one line, and exits with 2 where what was given is to be changed (options, names, files,
configuration, keys, SQL), with 1 where that was right and the work failed.
"""

from typing import ClassVar


class EvalakeError(Exception):
    """Base of all domain errors."""

    exit_code: ClassVar[int] = 1


class InputError(EvalakeError):
    """What was given cannot be used as it is."""

    exit_code = 2


class UsageError(InputError):
    """The call itself is wrong: an unknown suite or run, options that exclude each other."""


class ConfigurationError(InputError):
    """The configuration file or the environment says something that cannot be."""


class SuiteError(EvalakeError):
    """The code of a suite cannot be imported, or fails where a suite may not fail."""


class SourceError(InputError):
    """A dataset source is missing, unreadable, malformed or empty."""


class ContractError(EvalakeError):
    """Data breaks its contract in a way that stops a publication."""


class SchemaMismatchError(ContractError):
    """A frame or a table does not have the columns and types of its contract."""


class LakeError(EvalakeError):
    """The lake cannot be read or written, or holds something that is not evalake's."""


class OlderLakeError(LakeError):
    """A table is of the schema of an older evalake: it is to be migrated before it is used."""


class NewerLakeError(LakeError):
    """A table is of the schema of a newer evalake than this one."""


class MetricError(EvalakeError):
    """A metric cannot be computed from what it was given."""


class QueryError(InputError):
    """A SQL query was refused or failed."""


class ProviderError(InputError):
    """A model cannot be called at all: unknown provider, no key, or nothing answers."""


class MissingKeyError(ProviderError):
    """A model can be called once its key is there."""
