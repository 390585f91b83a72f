"""The lake: a folder or bucket prefix of Delta tables, each created from its contract and checked against it."""

import os
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
from evalake.contracts.engines.arrow import arrow_schema, polars_schema, schema_of, upgrade_rows
from evalake.contracts.engines.sql import check_constraints
from evalake.contracts.tables.runs import FORGOTTEN
from evalake.core.configuration import whole_address
from evalake.core.errors import LakeError, NewerLakeError, OlderLakeError, SchemaMismatchError, UsageError
from evalake.core.redaction import require_no_password

KEEP_LOG = {"delta.enableExpiredLogCleanup": "false"}

# Snapshots pin versions, so the log must outlive Delta's default of thirty days; vacuum removes data files
TABLE_CONFIGURATION = {
    **KEEP_LOG,
    "delta.logRetentionDuration": "interval 3650 days",
    "delta.deletedFileRetentionDuration": "interval 7 days",
}

# A Delta application transaction holds the schema version: the commit that changes the columns also raises it, and no
# version is written twice. A table without it has version 1.
_SCHEMA = "evalake.schema"

FILE = "file"  # the column with the file of each row, in scans of files

_NO_VERSION = 2**62  # beyond every version of a table

TO_MIGRATE = "stop its writers, back it up, and run `evalake maintain --migrate`"

# Engines misread these characters in a folder's path (`=` as a partition) or crash
_UNREADABLE = re.compile(r"[\[\]|^=\\\x00-\x1f]|%[0-9A-Fa-f]{2}")

# What object stores, and the client of Delta's engine, say of a failed request
_METADATA_SERVICE = "http://169.254.169.254"  # asked for credentials where none are set
_UNREACHABLE = re.compile(r"Error performing [A-Z]+ (https?://[^/\s]+)[^<]*(?:\(Connect\)|dns error|timed out)")
_REFUSED = re.compile(r"<Code>(\w+)</Code>\s*<Message>([^<]{1,200})")


class Table(DeltaTable):
    """A Delta table whose `file_uris` are plain paths: Delta percent-encodes the folder, so `my lake` is not found."""

    def file_uris(self, *args: Any, **kwargs: Any) -> list[str]:
        """List the files of this version: paths of a local table, URIs of any other."""
        uris = super().file_uris(*args, **kwargs)
        if not self.table_uri.startswith("file://"):
            return uris
        encoded = self.table_uri.removeprefix("file://")
        return [unquote(encoded) + uri.removeprefix(encoded) for uri in uris]


@dataclass(frozen=True)
class Opened:
    """A table at one version, with its schema version."""

    table: Table
    contract: Contract
    schema_version: int

    @property
    def is_current(self) -> bool:
        """Whether its columns are the contract's."""
        return self.schema_version == self.contract.schema_version

    def rows(self) -> pl.LazyFrame:
        """Scan the rows with the contract's columns in its order."""
        rows = pl.scan_delta(self.table)
        if self.is_current:
            return rows.select(list(self.contract.column))
        return upgrade_rows(rows, self.contract, self.schema_version)


@dataclass(frozen=True)
class Lake:
    """The place of the tables. `storage_options` are object_store's; credentials usually come from the environment.

    `uri` is as it was given. `address` tells lakes apart: it stays where the process changes its working directory.

    Raises UsageError for a `uri` that is blank, holds a password, or has parameters, which no store reads.
    """

    uri: str = field(compare=False)
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)  # may hold keys
    address: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.uri.strip():
            raise UsageError(
                "the lake has no name: give --lake (or EVALAKE_LAKE) a folder, or a URI that Delta supports"
            )
        require_no_password("the lake", self.uri, "give its credentials in the environment, like AWS_ACCESS_KEY_ID")
        if "://" in self.uri and (parameters := re.search(r"[?#]", self.uri)):
            shown = f"{self.uri[: parameters.end()]}…"
            raise UsageError(
                f"the lake {shown} has parameters, which no store reads: set them in the environment, "
                "like AWS_ENDPOINT_URL"
            )
        object.__setattr__(self, "address", whole_address(self.uri))

    def location(self, contract: Contract) -> str:
        """Build the URI of a table."""
        return self._uri(contract.table)

    def exists(self, contract: Contract) -> bool:
        """Tell whether the table has been created."""
        return self.find(contract.table) is not None

    def open(self, contract: Contract) -> Table:
        """Open an existing table at its newest version.

        Raises LakeError where it does not exist, OlderLakeError or NewerLakeError for the schema of another evalake,
        SchemaMismatchError for any other schema.
        """
        table = self._find_current(contract)
        if table is None:
            raise LakeError(f"the lake {self.uri} has no table {contract.table}: run or import something first")
        return table

    def ensure(self, contract: Contract) -> Table:
        """Open the table to write, or create it from its contract. Safe while other processes do the same.

        Raises LakeError where its folder is not writable, as `open` does, and where it cannot be created.
        """
        table = self._find_current(contract)
        if table is None:
            self._create(contract)
            table = self.open(contract)
        self._require_writable(contract)
        self._constrain(table, contract)
        return table

    def frame(self, contract: Contract, version: int | None = None) -> pl.LazyFrame:
        """Scan the rows of a table, with the newest schema at any version; empty where the table does not exist."""
        if version is not None:
            return self._open_at(contract, contract.table, version).rows()
        return self.pinned(contract, {})

    def frame_of_files(self, contract: Contract, files: Sequence[str]) -> pl.LazyFrame:
        """Scan the rows of some files of a table, each with its `file`."""
        if not files:
            return _no_rows(contract).with_columns(pl.lit("").alias(FILE))
        schema = polars_schema(contract)
        partitions = pl.Schema({name: schema.pop(name) for name in contract.partition_by})
        scanned = pl.scan_parquet(
            list(files),
            schema=schema,
            missing_columns="insert",  # for files that are older than a column
            hive_schema=partitions or None,
            hive_partitioning=bool(partitions),
            storage_options=dict(self.storage_options) or None,
            include_file_paths=FILE,
            glob=False,
        )
        return scanned.select(*contract.column, FILE)

    def pinned(self, contract: Contract, versions: Mapping[str, int | None]) -> pl.LazyFrame:
        """Scan the rows of a table at its version in `versions`, by its name or a former one; else at the newest.

        A version of None has no rows: the table did not exist. Raises LakeError where `forget` removed the version.
        """
        found = self.pinned_table(contract, versions)
        return _no_rows(contract) if found is None else found.rows()

    def pinned_table(self, contract: Contract, versions: Mapping[str, int | None]) -> "Opened | None":
        """Open the table that `pinned` scans; None where it scans none. Raises as that does."""
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
        """Find by table the first readable version, where data was forgotten; none while forgetting is interrupted."""
        first = pl.col("first_version").fill_null(_NO_VERSION).max()
        return dict(self.frame(FORGOTTEN).group_by("table_name").agg(first).collect().iter_rows())

    def find(self, name: str, version: int | None = None) -> Table | None:
        """Open the table of that name with any schema; None where it does not exist."""
        try:
            return Table(self._uri(name), version=version, storage_options=dict(self.storage_options))
        except TableNotFoundError as error:
            self._require_absent(name, error)
            return None
        except (DeltaError, OSError) as error:
            at = "" if version is None else f" at version {version}"
            raise LakeError(
                f"cannot open the table {name}{at} of the lake {self.uri}: {short_message(error)}"
            ) from error

    def require_writable(self) -> None:
        """Create the folder of a local lake. Raises LakeError where it is not writable."""
        if "://" in self.uri:
            return
        folder = Path(self.address)
        require_readable_path(folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with TemporaryFile(dir=folder):
                pass
        except OSError as error:
            raise LakeError(
                f"the lake {folder} is not writable ({error.strerror}): name another with --lake"
            ) from error

    def _require_writable(self, contract: Contract) -> None:
        """Refuse a local table that this user cannot write; Delta's engine would print a panic before its error."""
        folder = Path(self._uri(contract.table))
        if "://" not in self.uri and not all(os.access(each, os.W_OK) for each in (folder, folder / "_delta_log")):
            raise LakeError(
                f"the table {contract.table} of the lake {self.uri} is not writable: ask its owner for access, or name "
                "another lake with --lake"
            )

    def _uri(self, name: str) -> str:
        return f"{self.address.rstrip('/')}/{name}"

    def _find_current(self, contract: Contract) -> Table | None:
        """Open the table and require the newest schema; None where it does not exist, under any former name either."""
        table = self.find(contract.table)
        if table is None:
            for name in contract.former_tables:
                if self.find(name) is not None:
                    raise self._older(f"the table {name} is called {contract.table} now")
            return None
        if (version := self.schema_version(table, contract)) < contract.schema_version:
            versions = f"schema version {version}, this evalake {contract.schema_version}"
            raise self._older(f"the table {contract.table} has {versions}")
        return table

    def _older(self, change: str) -> OlderLakeError:
        return OlderLakeError(f"the lake {self.uri} is of an older evalake ({change}): {TO_MIGRATE}")

    def _open_at(self, contract: Contract, name: str, version: int) -> "Opened":
        table = self.find(name, version)
        if table is None:
            raise LakeError(f"the lake {self.uri} has no table {name}: a version of it cannot be read")
        return Opened(table, contract, self.schema_version(table, contract))

    def schema_version(self, table: DeltaTable, contract: Contract) -> int:
        """Find the schema version of a table.

        Raises NewerLakeError where it is above the contract's, SchemaMismatchError where the columns contradict it.
        """
        here, ours = table.schema(), delta_schema(contract.columns)
        if here == ours or (actual := _types(here)) == (wanted := _types(ours)):  # descriptions may differ
            return contract.schema_version  # every change shows in the columns
        stored = table.transaction_version(_SCHEMA) or 1
        if stored > contract.schema_version:
            raise NewerLakeError(
                f"a newer evalake wrote the table {contract.table} of the lake {self.uri} (schema version {stored}; "
                f"this one knows {contract.schema_version}): update evalake"
            )
        if stored == contract.schema_version:
            off = sorted(name for name in actual.keys() | wanted.keys() if actual.get(name) != wanted.get(name))
            raise SchemaMismatchError(
                f"the table {contract.table} of the lake {self.uri} differs from this evalake's schema in "
                f"{', '.join(off)}: use another lake, or the evalake that wrote it"
            )
        return stored

    def _require_absent(self, name: str, error: TableNotFoundError) -> None:
        """Raise LakeError where Delta could not reach the table, for which it raises the same error."""
        if "Unknown scheme" in str(error):
            raise LakeError(f"cannot open the lake {self.uri}: Delta does not know this URI scheme") from error
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
                    f"cannot create the table {contract.table} in the lake {self.uri}: {short_message(error)}"
                ) from error

    def _constrain(self, table: DeltaTable, contract: Contract) -> None:
        wanted = check_constraints(contract)
        while missing := wanted.keys() - (there := constraints(table)):
            try:
                table.alter.add_constraint({name: wanted[name] for name in sorted(missing)})
            except (DeltaError, OSError) as error:
                table.update_incremental()
                if constraints(table) == there:  # else another process has added some
                    raise LakeError(
                        f"cannot add the constraints {', '.join(sorted(missing))} to {contract.table}: "
                        f"{short_message(error)}"
                    ) from error


def schema_commit(version: int) -> CommitProperties:
    """Build the properties of a commit that sets a table's schema version, and fails after any other commit."""
    return CommitProperties(max_commit_retries=0, app_transactions=[Transaction(_SCHEMA, version)])


def _no_rows(contract: Contract) -> pl.LazyFrame:
    return polars_schema(contract).to_frame(eager=False)


def constraints(table: DeltaTable) -> set[str]:
    """List the names of the CHECK constraints that a table has."""
    prefix = "delta.constraints."
    return {key.removeprefix(prefix) for key in table.metadata().configuration if key.startswith(prefix)}


def short_message(error: BaseException) -> str:
    """Shorten an engine's error message to one line of at most 400 characters, without colours and stack trace.

    A failure of an object store is told by its cause and remedy.
    """
    text = re.sub(r"\x1b\[[0-9;]*m|↳", "", str(error).split("\n   0: ")[0])
    line = " ".join((_cause_in_store(text) or text).split())[:400]
    if line.startswith("Invalid table version"):
        line += ": the log ends before it, because the lake or the table was removed or replaced meanwhile"
    return line


def _cause_in_store(text: str) -> str | None:
    """Tell why a request to an object store failed, or None where the message does not say."""
    if _METADATA_SERVICE in text:
        return "no credentials are set: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or those of your store"
    if found := _UNREACHABLE.search(text):
        return f"{found[1]} does not answer: start it, or correct its address (AWS_ENDPOINT_URL)"
    if found := _REFUSED.search(text):
        is_absent = found[1] == "NoSuchBucket"
        remedy = "create it, or name another" if is_absent else "check the credentials and their rights"
        return f"the store answers {found[1]} ({found[2].strip().rstrip('.')}): {remedy}"
    return None


def require_readable_path(folder: Path) -> None:
    """Raise LakeError where the path has a character that engines misread."""
    if match := _UNREADABLE.search(str(folder.absolute())):
        raise LakeError(
            f"the lake cannot be in {folder.absolute()}: engines misread {match[0]!r} in a path; name another"
        )


@lru_cache(maxsize=256)  # compared at each opening of a table
def delta_schema(columns: tuple[Column, ...]) -> Schema:
    """Build the Delta schema of these columns."""
    return Schema.from_arrow(schema_of(columns))


def _types(schema: Schema) -> dict[str, tuple[str, bool]]:
    return {field.name: (str(field.type), field.nullable) for field in schema.fields}
