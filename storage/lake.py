"""The lake: one folder or bucket prefix of Delta tables, each created from its contract and held to its schema."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import polars as pl
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from contracts.arrow import arrow_schema
from contracts.contract import Contract
from contracts.delta import check_constraints
from contracts.errors import LakeError, SchemaMismatchError, UsageError

# Time travel must outlive the default thirty days of log, because snapshots pin versions; vacuum decides what goes.
TABLE_CONFIGURATION = {
    "delta.logRetentionDuration": "interval 3650 days",
    "delta.deletedFileRetentionDuration": "interval 7 days",
}


# In the path of a folder, the engines read these as something else (`=` as a partition), or end the process.
_UNREADABLE = re.compile(r"[\[\]|^=\\\x00-\x1f]|%[0-9A-Fa-f]{2}")


class Table(DeltaTable):
    """A Delta table whose `file_uris` are paths as the file system has them.

    The engine percent-encodes the folder's own path in them, so that no reader finds a file in `my lake`.
    """

    def file_uris(self, *args: Any, **kwargs: Any) -> list[str]:
        """The files of this version: paths of a local table, URIs of any other."""
        uris = super().file_uris(*args, **kwargs)
        if not self.table_uri.startswith("file://"):
            return uris
        encoded = self.table_uri.removeprefix("file://")
        return [unquote(encoded) + uri.removeprefix(encoded) for uri in uris]


@dataclass(frozen=True)
class Lake:
    """Where the tables are. `storage_options` are object_store's; credentials usually come from the environment.

    Raises UsageError for a blank `uri`, which would be the root of the file system.
    """

    uri: str
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)  # may hold keys

    def __post_init__(self) -> None:
        if not self.uri.strip():
            raise UsageError(
                "the lake has no name: give --lake (or EVALAKE_LAKE) a folder, or a URI that Delta supports"
            )

    def location(self, contract: Contract) -> str:
        """The URI of a table."""
        return f"{self.uri.rstrip('/')}/{contract.table}"

    def exists(self, contract: Contract) -> bool:
        """Whether the table has been created."""
        return self._find(contract) is not None

    def open(self, contract: Contract, version: int | None = None) -> Table:
        """An existing table, at its newest version or a given one.

        Raises LakeError where there is none (or no such version), SchemaMismatchError where it is not the contract's.
        """
        table = self._find(contract, version)
        if table is None:
            raise LakeError(f"the lake {self.uri} has no table {contract.table}: run or import something first")
        _require_schema(table, contract, self.uri)
        return table

    def ensure(self, contract: Contract) -> Table:
        """The table, created from its contract where it does not exist yet; safe against others doing the same."""
        table = self._find(contract)
        if table is None:
            self._create(contract)
            table = self.open(contract)
        _require_schema(table, contract, self.uri)
        self._constrain(table, contract)
        return table

    def frame(self, contract: Contract, version: int | None = None) -> pl.LazyFrame:
        """The rows of a table as a lazy frame; without rows where the table does not exist."""
        table = self.open(contract, version) if version is not None else self._find(contract)
        if table is None:
            return pl.from_arrow(arrow_schema(contract).empty_table()).lazy()  # type: ignore[union-attr]
        _require_schema(table, contract, self.uri)
        return pl.scan_delta(table)

    def version(self, contract: Contract) -> int | None:
        """The newest version of a table; None where it does not exist."""
        table = self._find(contract)
        return None if table is None else table.version()

    def _find(self, contract: Contract, version: int | None = None) -> Table | None:
        # By opening it: `DeltaTable.is_deltatable` would hold up every other thread while it asks an object store.
        try:
            return Table(self.location(contract), version=version, storage_options=dict(self.storage_options))
        except TableNotFoundError as error:
            self._require_absent(contract, error)
            return None
        except (DeltaError, OSError) as error:
            at = "" if version is None else f" at version {version}"
            raise LakeError(
                f"cannot open the table {contract.table}{at} of the lake {self.uri}: {first_words(error)}"
            ) from error

    def _require_absent(self, contract: Contract, error: TableNotFoundError) -> None:
        """Raise LakeError unless the table is not there: the engine says the same of what it cannot reach."""
        if "Unknown scheme" in str(error):
            raise LakeError(f"cannot open the lake {self.uri}: Delta knows no such scheme of URIs") from error
        if "://" in self.uri:
            return
        try:
            (Path(self.location(contract)) / "_delta_log").stat()
        except FileNotFoundError:
            return
        except OSError as denied:
            raise LakeError(f"cannot read the lake {self.uri} ({denied.strerror}): name another with --lake") from error

    def _create(self, contract: Contract) -> None:
        if "://" not in self.uri:
            _require_writable(Path(self.uri))
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
        while missing := wanted.keys() - constraints(table):
            name = min(missing)
            try:
                table.alter.add_constraint({name: wanted[name]})
            except (CommitFailedError, DeltaError) as error:
                table.update_incremental()
                if name not in constraints(table):
                    raise LakeError(
                        f"cannot add the constraint {name} to {contract.table}: {first_words(error)}"
                    ) from error


def constraints(table: DeltaTable) -> set[str]:
    """The names of the CHECK constraints a table has."""
    prefix = "delta.constraints."
    return {key.removeprefix(prefix) for key in table.metadata().configuration if key.startswith(prefix)}


def first_words(error: BaseException) -> str:
    """What an engine says of an error as one short line, without the colours and stack that it may come with."""
    text = re.sub(r"\x1b\[[0-9;]*m|↳", "", str(error).split("\n   0: ")[0])
    return " ".join(text.split())[:400]


def _require_writable(folder: Path) -> None:
    if found := _UNREADABLE.search(str(folder.absolute())):
        raise LakeError(
            f"no lake can be in {folder.absolute()}: engines cannot read {found[0]!r} in a path; name another"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".evalake-write-probe"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise LakeError(f"the lake {folder} is not writable ({error.strerror}): name another with --lake") from error


def _require_schema(table: DeltaTable, contract: Contract, uri: str) -> None:
    found = {f.name: (str(f.type), f.nullable) for f in table.schema().fields}
    wanted = {f.name: (str(f.type), f.nullable) for f in _delta_schema(contract)}
    if found != wanted:
        off = sorted(name for name in found.keys() | wanted.keys() if found.get(name) != wanted.get(name))
        raise SchemaMismatchError(
            f"the table {contract.table} of the lake {uri} is not of this evalake's schema (it differs in "
            f"{', '.join(off)}): use another lake, or the version of evalake that wrote it"
        )


def _delta_schema(contract: Contract) -> list[Any]:
    from deltalake import Schema

    return list(Schema.from_arrow(arrow_schema(contract)).fields)
