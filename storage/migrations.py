"""Migrations: tables of an older schema brought to the newest, each by a commit that can be made only once.

What is to be done follows from the `changes` of a table's contract and from the schema version that the table has:

* columns that were added: one commit, which touches no file;
* rows that became others, or columns that have other names: the table's constraints go, then one commit replaces all
  rows and the schema, made only if nothing else was committed since they were read;
* a table that has another name: one commit makes the new one with all rows in it. The old one stays as it is, for the
  versions that snapshots pin.

The commit that changes a schema carries its version. So what was cut off is begun again, and of two migrations
at once, one finds it done.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
import pyarrow as pa
from deltalake import DeltaTable, WriterProperties, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError

from evalake.contracts.contract import Added, Contract
from evalake.contracts.engines.arrow import arrow_schema, bring_forward
from evalake.contracts.tables import CALLS
from evalake.core.errors import OlderLakeError
from evalake.storage.commit import commit
from evalake.storage.lake import TABLE_CONFIGURATION, TO_MIGRATE, Lake, constraints, delta_schema, schema_commit
from evalake.storage.ledger import COMPACTED

CHUNK_ROWS = 100_000


@dataclass(frozen=True, slots=True)
class Migration:
    """What brings one table forward; `source` is the table as it is, under its former name where that has changed."""

    table: str
    source: str
    from_version: int
    to_version: int
    changes: tuple[str, ...]  # in words


def pending(lake: Lake, contracts: Sequence[Contract]) -> list[Migration]:
    """List the migrations that the lake's tables need; none where it is of this evalake's schema.

    Raises NewerLakeError where a table is of a newer schema, SchemaMismatchError where it is of none.
    """
    behind = (_pending(lake, contract) for contract in {each.table: each for each in contracts}.values())
    return [each[0] for each in behind if each is not None]


def require_current(lake: Lake, contracts: Sequence[Contract]) -> None:
    """Raise OlderLakeError, naming all of them, where tables of the lake are of an older schema."""
    if older := pending(lake, contracts):
        names = ", ".join(each.source for each in older)
        tables = f"the table {names} has" if len(older) == 1 else f"the tables {names} have"
        raise OlderLakeError(f"the lake {lake.uri} is of an older evalake ({tables} an older schema): {TO_MIGRATE}")


def migrate(lake: Lake, contracts: Sequence[Contract]) -> list[Migration]:
    """Bring every table to the newest schema, and return what was done.

    May be cut off and run again at any point. Raises LakeError where a table cannot be
    migrated; the ones before it are.
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

    def migrate_once() -> None:  # what lost a race, to a writer or to another migration, is looked at again
        nonlocal first
        if pending := _pending(lake, contract):
            migration, table = pending
            first = first or migration
            _bring(lake, contract, migration, table)

    commit(
        migrate_once,
        busy=f"the table {contract.table} kept changing during its migration: stop what writes to it, and run "
        "`evalake maintain --migrate` again",
        failed=f"cannot migrate the table {contract.table}",
    )
    if lake.exists(contract):
        lake.ensure(contract)  # adds the constraints
    return first


def _bring(lake: Lake, contract: Contract, migration: Migration, table: DeltaTable) -> None:
    """Make the commit that brings a table to the newest schema."""
    changes = contract.changes[migration.from_version - 1 :]
    if migration.source != contract.table:
        _move(lake, contract, migration, table)
    elif all(isinstance(change, Added) for change in changes):
        _add_columns(table, contract)
    else:
        _rewrite(table, contract, migration)


def _add_columns(table: DeltaTable, contract: Contract) -> None:
    there = {field.name for field in table.schema().fields}
    missing = [field for field in delta_schema(contract.columns).fields if field.name not in there]
    table.alter.add_columns(missing, commit_properties=schema_commit(contract.schema_version))


def _rewrite(table: DeltaTable, contract: Contract, migration: Migration) -> None:
    for name in sorted(constraints(table)):  # they may be about columns that go; those of the contract are added again
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
            raise CommitFailedError(f"{contract.table} was made by somebody else") from error
        raise


def _rows(table: DeltaTable, contract: Contract, migration: Migration) -> pa.RecordBatchReader:
    """Read the rows of a table as those of the newest schema, a chunk at a time."""
    schema = arrow_schema(contract)
    frame = bring_forward(pl.scan_delta(table), contract, migration.from_version)

    def batches() -> Iterator[Any]:
        for chunk in frame.collect_batches(chunk_size=CHUNK_ROWS):
            yield from chunk.to_arrow().cast(schema).to_batches()

    return pa.RecordBatchReader.from_batches(schema, batches())
