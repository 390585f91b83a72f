"""Every error a user may meet: one clear sentence that says what, where, and what to do."""


class EvalakeError(Exception):
    """Base of all domain errors; the command line prints its text as one line and exits with 1."""


class UsageError(EvalakeError):
    """The call itself is wrong (an unknown suite, options that exclude each other); the command line exits with 2."""


class ConfigurationError(EvalakeError):
    """The configuration file or the environment says something that cannot be."""


class SuiteError(EvalakeError):
    """The code of a suite cannot be imported, or fails where a suite may not fail."""


class SourceError(EvalakeError):
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


class QueryError(EvalakeError):
    """A SQL query was refused or failed."""


class ProviderError(EvalakeError):
    """A model cannot be called at all: unknown provider, no key, or nothing answers."""
