"""Migrates tables to the newest schema, each by one commit.

The `changes` of a table's contract, from the table's schema version on, decide how:

* added columns: one commit, which rewrites no file;
* rewritten rows or renamed columns: the constraints are dropped, then one commit replaces all rows and the schema,
  unless another commit came since they were read;
* a renamed table: one commit creates the new table with all rows. The old table stays for pinned versions.

The commit that changes a schema carries its version. So an interrupted migration can be run again, and the second of
two concurrent migrations finds nothing to do.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
import pyarrow as pa
from deltalake import DeltaTable, WriterProperties, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError

from evalake.contracts.contract import Added, Contract
from evalake.contracts.engines.arrow import arrow_schema, upgrade_rows
from evalake.contracts.tables import CALLS
from evalake.core.errors import OlderLakeError
from evalake.storage.lake import TABLE_CONFIGURATION, TO_MIGRATE, Lake, constraints, delta_schema, schema_commit
from evalake.storage.landing import commit
from evalake.storage.ledger import COMPACTED

CHUNK_ROWS = 100_000


@dataclass(frozen=True, slots=True)
class Migration:
    """The migration of one table; `source` is its present name."""

    table: str
    source: str
    from_version: int
    to_version: int
    changes: tuple[str, ...]  # in words


def pending(lake: Lake, contracts: Sequence[Contract]) -> list[Migration]:
    """List the migrations that the lake's tables need.

    Raises NewerLakeError for a newer schema, SchemaMismatchError for an unknown one.
    """
    behind = (_pending(lake, contract) for contract in {each.table: each for each in contracts}.values())
    return [each[0] for each in behind if each is not None]


def require_current(lake: Lake, contracts: Sequence[Contract]) -> None:
    """Raise OlderLakeError, naming all of them, where tables have an older schema."""
    if older := pending(lake, contracts):
        names = ", ".join(each.source for each in older)
        tables = f"the table {names} has" if len(older) == 1 else f"the tables {names} have"
        raise OlderLakeError(f"the lake {lake.uri} is of an older evalake ({tables} an older schema): {TO_MIGRATE}")


def migrate(lake: Lake, contracts: Sequence[Contract]) -> list[Migration]:
    """Migrate every table to the newest schema, and return the migrations.

    Can be interrupted and run again. Raises LakeError at the first table that fails.
    """
    done = (_migrate(lake, contract) for contract in contracts)
    return [each for each in done if each is not None]


def _pending(lake: Lake, contract: Contract) -> tuple[Migration, DeltaTable] | None:
    for name in (contract.table, *contract.former_tables):
        table = lake.find(name)
        if table is None:
            continue
        version = lake.schema_version(table, contract)
        if name == contract.table and version == contract.schema_version:
            return None
        words = tuple(change.words for change in contract.changes[version - 1 :])
        return Migration(contract.table, name, version, contract.schema_version, words), table
    return None


def _migrate(lake: Lake, contract: Contract) -> Migration | None:
    first: Migration | None = None

    def migrate_once() -> None:
        nonlocal first
        if pending := _pending(lake, contract):
            migration, table = pending
            first = first or migration
            _upgrade(lake, contract, migration, table)

    commit(
        migrate_once,
        busy=f"the table {contract.table} kept changing during its migration: stop its writers, and run "
        "`evalake maintain --migrate` again",
        failed=f"cannot migrate the table {contract.table}",
    )
    if lake.exists(contract):
        lake.ensure(contract)  # adds the constraints
    return first


def _upgrade(lake: Lake, contract: Contract, migration: Migration, table: DeltaTable) -> None:
    """Commit the migration of a table."""
    changes = contract.changes[migration.from_version - 1 :]
    if migration.source != contract.table:
        _move(lake, contract, migration, table)
    elif all(isinstance(change, Added) for change in changes):
        present = {field.name for field in table.schema().fields}
        missing = [field for field in delta_schema(contract.columns).fields if field.name not in present]
        table.alter.add_columns(missing, commit_properties=schema_commit(contract.schema_version))
    else:
        _rewrite(table, contract, migration)


def _rewrite(table: DeltaTable, contract: Contract, migration: Migration) -> None:
    for name in sorted(constraints(table)):  # the contract's are added again at the end
        table.alter.drop_constraint(name)
    write_deltalake(
        table,
        _rows(table, contract, migration),
        mode="overwrite",
        schema_mode="overwrite",
        writer_properties=COMPACTED if contract is CALLS else WriterProperties(),
        commit_properties=schema_commit(contract.schema_version),
    )


def _move(lake: Lake, contract: Contract, migration: Migration, table: DeltaTable) -> None:
    try:
        write_deltalake(
            lake.location(contract),
            _rows(table, contract, migration),
            mode="error",
            partition_by=list(contract.partition_by) or None,
            name=contract.table,
            description=contract.description,
            configuration=TABLE_CONFIGURATION,
            storage_options=dict(lake.storage_options),
            commit_properties=schema_commit(contract.schema_version),
        )
    except DeltaError as error:
        if lake.exists(contract):
            raise CommitFailedError(f"another process has created {contract.table}") from error
        raise


def _rows(table: DeltaTable, contract: Contract, migration: Migration) -> pa.RecordBatchReader:
    """Read the rows of a table in the newest schema, in chunks."""
    schema = arrow_schema(contract)
    frame = upgrade_rows(pl.scan_delta(table), contract, migration.from_version)

    def batches() -> Iterator[Any]:
        for chunk in frame.collect_batches(chunk_size=CHUNK_ROWS):
            yield from chunk.to_arrow().cast(schema).to_batches()

    return pa.RecordBatchReader.from_batches(schema, batches())
