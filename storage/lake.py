"""The lake: one folder or bucket prefix of Delta tables, each created from its contract and held to its schema."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any
from urllib.parse import unquote

import polars as pl
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from evalake.contracts.contract import Column, Contract
from evalake.contracts.engines.arrow import arrow_schema, bring_forward, polars_schema, schema_of
from evalake.contracts.engines.sql import check_constraints
from evalake.contracts.tables.quality import FORGOTTEN
from evalake.core.errors import LakeError, NewerLakeError, OlderLakeError, SchemaMismatchError, UsageError
from evalake.core.redaction import require_no_password

KEEP_LOG = {"delta.enableExpiredLogCleanup": "false"}

# Time travel must outlive the default thirty days of log, because snapshots pin versions; vacuum decides what goes.
TABLE_CONFIGURATION = {
    **KEEP_LOG,
    "delta.logRetentionDuration": "interval 3650 days",
    "delta.deletedFileRetentionDuration": "interval 7 days",
}

# The version of a table's schema is that of a Delta application transaction, so the commit that changes the columns
# changes it, too, and one version is never written twice. A table without one is of version 1.
_SCHEMA = "evalake.schema"

FILE = "file"  # the column that names the file of a row, where files are read

_NO_VERSION = 2**62  # beyond every version of a table

TO_MIGRATE = "stop what writes to it, back it up, and run `evalake maintain --migrate`"

# In the path of a folder, the engines read these as something else (`=` as a partition), or end the process.
_UNREADABLE = re.compile(r"[\[\]|^=\\\x00-\x1f]|%[0-9A-Fa-f]{2}")


class Table(DeltaTable):
    """A Delta table whose `file_uris` are paths as the file system has them.

    The engine percent-encodes the folder's own path in them, so that no reader finds a file in `my lake`.
    """

    def file_uris(self, *args: Any, **kwargs: Any) -> list[str]:
        """List the files of this version: paths of a local table, URIs of any other."""
        uris = super().file_uris(*args, **kwargs)
        if not self.table_uri.startswith("file://"):
            return uris
        encoded = self.table_uri.removeprefix("file://")
        return [unquote(encoded) + uri.removeprefix(encoded) for uri in uris]


@dataclass(frozen=True)
class Opened:
    """A table at one version, and the version of the schema that it has there."""

    table: Table
    contract: Contract
    schema_version: int

    @property
    def is_current(self) -> bool:
        """Whether its columns are the contract's."""
        return self.schema_version == self.contract.schema_version

    def rows(self) -> pl.LazyFrame:
        """Scan the rows, in the contract's order of columns: in the table itself, one added later comes last."""
        rows = pl.scan_delta(self.table)
        if self.is_current:
            return rows.select(list(self.contract.column))
        return bring_forward(rows, self.contract, self.schema_version)


@dataclass(frozen=True)
class Lake:
    """Where the tables are. `storage_options` are object_store's; credentials usually come from the environment.

    Raises UsageError for a blank `uri`, which would be the root of the file system, and for one with a password or with
    parameters: stores take none, and what stands behind them, such as a table's name, would be lost.
    """

    uri: str
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)  # may hold keys

    def __post_init__(self) -> None:
        if not self.uri.strip():
            raise UsageError(
                "the lake has no name: give --lake (or EVALAKE_LAKE) a folder, or a URI that Delta supports"
            )
        require_no_password("the lake", self.uri, "give its credentials in the environment, such as AWS_ACCESS_KEY_ID")
        if "://" in self.uri and (parameters := re.search(r"[?#]", self.uri)):
            shown = f"{self.uri[: parameters.end()]}…"
            raise UsageError(
                f"the lake {shown} has parameters, which no store takes: leave them out, and give what they say in the "
                "environment, such as AWS_ENDPOINT_URL"
            )

    def location(self, contract: Contract) -> str:
        """Build the URI of a table."""
        return self._uri(contract.table)

    def exists(self, contract: Contract) -> bool:
        """Tell whether the table has been created."""
        return self.find(contract.table) is not None

    def open(self, contract: Contract) -> Table:
        """Open an existing table at its newest version.

        Raises LakeError where there is none, OlderLakeError or NewerLakeError where it has the schema of another
        version of evalake, SchemaMismatchError where it has that of none.
        """
        table = self._find_current(contract)
        if table is None:
            raise LakeError(f"the lake {self.uri} has no table {contract.table}: run or import something first")
        return table

    def ensure(self, contract: Contract) -> Table:
        """Open the table, created from its contract where it does not exist yet; safe against others doing the same."""
        table = self._find_current(contract)
        if table is None:
            self._create(contract)
            table = self.open(contract)
        self._constrain(table, contract)
        return table

    def frame(self, contract: Contract, version: int | None = None) -> pl.LazyFrame:
        """Scan the rows of a table as a lazy frame; without rows where the table does not exist.

        Rows of an older version of the table have the columns of the newest, whichever schema they were written by.
        """
        if version is not None:
            return self._open_at(contract, contract.table, version).rows()
        return self.pinned(contract, {})

    def frame_of_files(self, contract: Contract, files: Sequence[str]) -> pl.LazyFrame:
        """Scan the rows of some files of a table as a lazy frame, each with the `file` that it is in."""
        if not files:
            return _no_rows(contract).with_columns(pl.lit("").alias(FILE))
        schema = polars_schema(contract)
        partitions = pl.Schema({name: schema.pop(name) for name in contract.partition_by})
        scanned = pl.scan_parquet(
            list(files),
            schema=schema,
            missing_columns="insert",  # a file may be from before a column was added
            hive_schema=partitions or None,
            hive_partitioning=bool(partitions),
            storage_options=dict(self.storage_options) or None,
            include_file_paths=FILE,
            glob=False,
        )
        return scanned.select(*contract.column, FILE)

    def pinned(self, contract: Contract, versions: Mapping[str, int | None]) -> pl.LazyFrame:
        """Scan the rows of a table at the version that `versions` has for its name, or for a name that it had before.

        Without rows where that version is None, for then the table did not exist; at the newest version where
        `versions` has no such name. Raises LakeError where that version was removed, for it held what was forgotten.
        """
        found = self.pinned_table(contract, versions)
        return _no_rows(contract) if found is None else found.rows()

    def pinned_table(self, contract: Contract, versions: Mapping[str, int | None]) -> "Opened | None":
        """Open the table whose rows `pinned` scans; None where it scans none. Raises as that does."""
        for name in (contract.table, *contract.former_tables):
            if name in versions:
                version = versions[name]
                if version is None:
                    return None
                if version < self.first_versions().get(name, 0):
                    raise LakeError(
                        f"version {version} of the table {name} of the lake {self.uri} is gone: data in it was "
                        "forgotten; its metrics are kept (if `evalake forget` was cut off, run it again)"
                    )
                return self._open_at(contract, name, version)
        table = self._find_current(contract)
        return None if table is None else Opened(table, contract, contract.schema_version)

    def version(self, contract: Contract) -> int | None:
        """Look up the newest version of a table; None where it does not exist."""
        table = self.find(contract.table)
        return None if table is None else table.version()

    def first_versions(self) -> dict[str, int]:
        """Find by table the first version that is left, where data was forgotten; earlier ones cannot be read.

        Where forgetting was cut off, no version counts as left.
        """
        first = pl.col("first_version").fill_null(_NO_VERSION).max()
        return dict(self.frame(FORGOTTEN).group_by("table_name").agg(first).collect().iter_rows())

    def find(self, name: str, version: int | None = None) -> Table | None:
        """Open the table of that name, whatever its schema; None where there is none."""
        # By opening it: `DeltaTable.is_deltatable` would hold up every other thread while it asks an object store.
        try:
            return Table(self._uri(name), version=version, storage_options=dict(self.storage_options))
        except TableNotFoundError as error:
            self._require_absent(name, error)
            return None
        except (DeltaError, OSError) as error:
            at = "" if version is None else f" at version {version}"
            raise LakeError(f"cannot open the table {name}{at} of the lake {self.uri}: {first_words(error)}") from error

    def require_writable(self) -> None:
        """Make the folder of a local lake. Raises LakeError where nothing can be written there."""
        if "://" not in self.uri:
            _require_writable(Path(self.uri))

    def _uri(self, name: str) -> str:
        return f"{self.uri.rstrip('/')}/{name}"

    def _find_current(self, contract: Contract) -> Table | None:
        """Open the table, of the newest schema; None where it does not exist, not even under a former name."""
        table = self.find(contract.table)
        if table is None:
            for name in contract.former_tables:
                if self.find(name) is not None:
                    raise OlderLakeError(self._to_migrate(f"the table {name} is called {contract.table} now"))
            return None
        if (version := self.schema_version(table, contract)) < contract.schema_version:
            versions = f"schema version {version}, this evalake {contract.schema_version}"
            raise OlderLakeError(self._to_migrate(f"the table {contract.table} has {versions}"))
        return table

    def _to_migrate(self, change: str) -> str:
        return f"the lake {self.uri} is of an older evalake ({change}): {TO_MIGRATE}"

    def _open_at(self, contract: Contract, name: str, version: int) -> "Opened":
        table = self.find(name, version)
        if table is None:
            raise LakeError(f"the lake {self.uri} has no table {name}: a version of it cannot be read")
        return Opened(table, contract, self.schema_version(table, contract))

    def schema_version(self, table: DeltaTable, contract: Contract) -> int:
        """Find the version of the schema that a table has, up to the contract's.

        Raises NewerLakeError beyond that, SchemaMismatchError where the table is not what its version says.
        """
        here, ours = table.schema(), delta_schema(contract.columns)
        if here == ours or (actual := _types(here)) == (wanted := _types(ours)):  # a description may have changed
            return contract.schema_version  # every change shows in the columns
        stored = table.transaction_version(_SCHEMA) or 1
        if stored > contract.schema_version:
            raise NewerLakeError(
                f"the table {contract.table} of the lake {self.uri} was written by a newer evalake (schema version "
                f"{stored}, and this one knows {contract.schema_version}): update evalake"
            )
        if stored == contract.schema_version:
            off = sorted(name for name in actual.keys() | wanted.keys() if actual.get(name) != wanted.get(name))
            raise SchemaMismatchError(
                f"the table {contract.table} of the lake {self.uri} is not of this evalake's schema (it differs in "
                f"{', '.join(off)}): use another lake, or the version of evalake that wrote it"
            )
        return stored

    def _require_absent(self, name: str, error: TableNotFoundError) -> None:
        """Raise LakeError unless the table is not there: the engine raises the same where it cannot reach it."""
        if "Unknown scheme" in str(error):
            raise LakeError(f"cannot open the lake {self.uri}: Delta knows no such scheme of URIs") from error
        if "://" in self.uri:
            return
        try:
            (Path(self._uri(name)) / "_delta_log").stat()
        except FileNotFoundError:
            return
        except OSError as denied:
            raise LakeError(f"cannot read the lake {self.uri} ({denied.strerror}): name another with --lake") from error

    def _create(self, contract: Contract) -> None:
        self.require_writable()
        try:
            DeltaTable.create(
                self.location(contract),
                arrow_schema(contract),
                mode="ignore",
                partition_by=list(contract.partition_by),
                name=contract.table,
                description=contract.description,
                configuration=TABLE_CONFIGURATION,
                storage_options=dict(self.storage_options),
                commit_properties=schema_commit(contract.schema_version),
            )
        except CommitFailedError:
            return  # another process created it at the same moment
        except (DeltaError, OSError) as error:
            if not self.exists(contract):
                raise LakeError(
                    f"cannot create the table {contract.table} in the lake {self.uri}: {first_words(error)}"
                ) from error

    def _constrain(self, table: DeltaTable, contract: Contract) -> None:
        wanted = check_constraints(contract)
        while missing := wanted.keys() - (there := constraints(table)):
            try:
                table.alter.add_constraint({name: wanted[name] for name in sorted(missing)})
            except (DeltaError, OSError) as error:
                table.update_incremental()
                if constraints(table) == there:  # no other process has added any
                    raise LakeError(
                        f"cannot add the constraints {', '.join(sorted(missing))} to {contract.table}: "
                        f"{first_words(error)}"
                    ) from error


def schema_commit(version: int) -> CommitProperties:
    """Build the properties of a commit that sets a table's schema version; it fails if any other came before it."""
    return CommitProperties(max_commit_retries=0, app_transactions=[Transaction(_SCHEMA, version)])


def _no_rows(contract: Contract) -> pl.LazyFrame:
    return polars_schema(contract).to_frame(eager=False)


def constraints(table: DeltaTable) -> set[str]:
    """List the names of the CHECK constraints that a table has."""
    prefix = "delta.constraints."
    return {key.removeprefix(prefix) for key in table.metadata().configuration if key.startswith(prefix)}


def first_words(error: BaseException) -> str:
    """Shorten an engine's error message to one line, without the colours and stack trace that it may come with."""
    text = re.sub(r"\x1b\[[0-9;]*m|↳", "", str(error).split("\n   0: ")[0])
    return " ".join(text.split())[:400]


def require_readable_path(folder: Path) -> None:
    """Raise LakeError where engines would read the path of a lake's folder as something else."""
    if match := _UNREADABLE.search(str(folder.absolute())):
        raise LakeError(
            f"no lake can be in {folder.absolute()}: engines cannot read {match[0]!r} in a path; name another"
        )


def _require_writable(folder: Path) -> None:
    require_readable_path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):  # under a name of its own: processes create tables at the same time
            pass
    except OSError as error:
        raise LakeError(f"the lake {folder} is not writable ({error.strerror}): name another with --lake") from error


@lru_cache(maxsize=256)  # each opening of a table compares it
def delta_schema(columns: tuple[Column, ...]) -> Schema:
    """Build the schema of a table with these columns, as Delta has it."""
    return Schema.from_arrow(schema_of(columns))


def _types(schema: Schema) -> dict[str, tuple[str, bool]]:
    return {field.name: (str(field.type), field.nullable) for field in schema.fields}
