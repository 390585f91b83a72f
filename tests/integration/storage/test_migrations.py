"""Migrations: a table of an older schema keeps its rows and versions, wherever the migration is cut off."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import polars as pl
import pytest
from deltalake import DeltaTable
from deltalake import Field as DeltaField
from deltalake.schema import PrimitiveType
from deltalake.table import TableAlterer
from pydantic import Field

from evalake.contracts.contract import Added, Contract, Renamed, Rewritten, RowModel
from evalake.contracts.engines.arrow import conform
from evalake.contracts.rule import Kind, Rule
from evalake.core.errors import ContractError, LakeError, NewerLakeError, OlderLakeError, SchemaMismatchError
from evalake.storage import migrations
from evalake.storage.lake import Lake, constraints
from evalake.storage.landing import land
from evalake.storage.maintenance import maintain
from evalake.storage.migrations import migrate, pending, require_current
from tests.integration.storage.sql.engine import answered
from tests.processes import process_context


class First(RowModel):
    key: str = Field(description="The key.")
    size: int = Field(description="The size.")


class Second(First):
    colour: str | None = Field(description="The colour, which rows from before do not have.")


class Third(RowModel):
    key: str = Field(description="The key.")
    dimension: str = Field(description="Which one.")
    value: float | None = Field(description="Its value.")


def long_form(rows: pl.LazyFrame) -> pl.LazyFrame:
    """One row for the size, one more for twice of it."""
    once = rows.select("key", dimension=pl.lit("size"), value=pl.col("size").cast(pl.Float64))
    return pl.concat([once, once.with_columns(dimension=pl.lit("twice"), value=pl.col("value") * 2)])


NOT_NEGATIVE = Rule("size_not_negative", "size", Kind.BETWEEN, {"minimum": 0, "maximum": None})
FIRST = Contract("toys", First, ("key",), "Toys.", (NOT_NEGATIVE,))
ADDED = Contract("toys", Second, ("key",), "Toys.", (NOT_NEGATIVE,), changes=(Added(("colour",)),))
BELOW = Rule("value_below_thousand", "value", Kind.BETWEEN, {"minimum": None, "maximum": 1000})
LONG = Contract(
    "toys", Third, ("key", "dimension"), "Toys.", (BELOW,), changes=(*ADDED.changes, Rewritten("long form", long_form))
)
MOVED = replace(LONG, table="playthings", changes=(*LONG.changes, Renamed("toys")))
NEWEST = (ADDED, LONG, MOVED)


def rows(contract: Contract, *values: tuple[Any, ...]) -> pl.DataFrame:
    return conform([dict(zip(contract.column, value, strict=True)) for value in values], contract)


def content(lake: Lake, contract: Contract) -> list[tuple[Any, ...]]:
    return sorted(lake.frame(contract).collect().rows())


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A lake whose toys were written in two commits by the first version of the schema."""
    lake = Lake(str(tmp_path / "lake"))
    land(lake, FIRST, rows(FIRST, ("a", 1), ("b", 2)))
    land(lake, FIRST, rows(FIRST, ("c", 3)))
    return lake


CAME_TO = {
    "toys 2": [("a", 1, None), ("b", 2, None), ("c", 3, None)],
    "toys 3": [
        (key, what, size * n) for n, key in enumerate("abc", 1) for what, size in (("size", 1.0), ("twice", 2.0))
    ],
}


def expected(contract: Contract) -> list[tuple[Any, ...]]:
    return CAME_TO["toys 2" if contract is ADDED else "toys 3"]  # type: ignore[return-value]


@pytest.mark.parametrize("contract", NEWEST, ids=lambda contract: f"{contract.table} {contract.schema_version}")
def test_an_older_table_is_refused_until_it_is_migrated_and_then_has_every_row(lake: Lake, contract: Contract) -> None:
    for use in (lambda: lake.frame(contract), lambda: lake.ensure(contract), lambda: require_current(lake, [contract])):
        with pytest.raises(OlderLakeError, match="evalake maintain --migrate"):
            use()
    (planned,) = pending(lake, [contract])
    assert migrate(lake, [contract]) == [planned]
    assert (planned.table, planned.source, planned.from_version) == (contract.table, "toys", 1)
    assert planned.to_version == contract.schema_version
    assert content(lake, contract) == expected(contract)
    assert migrate(lake, [contract]) == []
    table = lake.open(contract)
    assert constraints(table) == {rule.id for rule in contract.row_rules} | {
        f"{name}_finite" for name in ("value",) if name in contract.column
    }
    assert table.protocol().min_reader_version == 1
    assert table.protocol().min_writer_version <= 3
    assert all(field.nullable == contract.column[field.name].nullable for field in table.schema().fields)


@pytest.mark.parametrize("contract", NEWEST, ids=lambda contract: f"{contract.table} {contract.schema_version}")
def test_older_versions_of_a_table_are_read_as_the_newest(lake: Lake, contract: Contract) -> None:
    first = next(v for v in range(9) if DeltaTable(lake.location(FIRST), version=v).count() == 2)
    migrate(lake, [contract])
    fewer = sorted(row for row in expected(contract) if row[0] != "c")
    assert sorted(lake.pinned(contract, {"toys": first}).collect().rows()) == fewer
    assert lake.pinned(contract, {"toys": None}).collect().is_empty()
    assert sorted(lake.pinned(contract, {}).collect().rows()) == expected(contract)
    asked = answered(lake, [contract], f"select * from {contract.table}", versions={"toys": first})
    assert sorted(asked.rows()) == fewer


@pytest.mark.parametrize("contract", NEWEST, ids=lambda contract: f"{contract.table} {contract.schema_version}")
def test_a_migrated_table_takes_rows_keeps_to_its_rules_and_is_maintained(lake: Lake, contract: Contract) -> None:
    migrate(lake, [contract])
    value = ("d", 4, "red") if contract is ADDED else ("d", "size", 4.0)
    bad = ("e", -1, "red") if contract is ADDED else ("e", "size", 4000.0)
    assert land(lake, contract, rows(contract, value, *expected(contract)[:1])).inserted == 1
    with pytest.raises(ContractError):
        land(lake, contract, rows(contract, bad))
    maintain(lake, [contract])
    lake.open(contract).create_checkpoint()
    assert content(lake, contract) == sorted([*expected(contract), value])
    assert pending(lake, [contract]) == []


def test_steps_in_between_may_be_left_out_or_made(lake: Lake) -> None:
    migrate(lake, [ADDED])
    land(lake, ADDED, rows(ADDED, ("d", 4, "red")))
    (done,) = migrate(lake, [MOVED])
    assert (done.from_version, done.to_version, done.changes) == (2, 4, ("long form", "was toys"))
    assert ("d", "twice", 8.0) in content(lake, MOVED)


class KilledError(BaseException):
    """What a process that is killed does not get past."""


def commits() -> Iterator[tuple[Any, str]]:
    yield migrations, "write_deltalake"
    yield from ((TableAlterer, name) for name in ("add_columns", "drop_constraint", "add_constraint"))


def killed(lake: Lake, contract: Contract, number: int, *, after: bool) -> bool:
    """Migrate until the commit of that number, and die before or after it; False where there are fewer commits."""
    made = 0

    def dying(commit: Any) -> Any:
        def run(*args: Any, **kwargs: Any) -> Any:
            nonlocal made
            made += 1
            if made == number and not after:
                raise KilledError
            done = commit(*args, **kwargs)
            if made == number:
                raise KilledError
            return done

        return run

    patches = [patch.object(owner, name, dying(getattr(owner, name))) for owner, name in commits()]
    for each in patches:
        each.start()
    try:
        with suppress(KilledError):
            migrate(lake, [contract])
            return False
        return True
    finally:
        for each in patches:
            each.stop()


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_killed_at_any_commit_it_goes_on_and_loses_nothing(tmp_path: Path, after: bool) -> None:
    contract = MOVED  # which has every kind of change
    for number in range(1, 20):
        lake = Lake(str(tmp_path / f"lake {number}"))
        land(lake, FIRST, rows(FIRST, ("a", 1), ("b", 2), ("c", 3)))
        again = killed(lake, contract, number, after=after)
        migrate(lake, [contract])
        assert content(lake, contract) == expected(contract)
        assert constraints(lake.ensure(contract)) >= {rule.id for rule in contract.row_rules}
        if not again:
            break
    assert 1 < number < 19


@contextmanager
def no_file_longer_than(size: int) -> Iterator[None]:
    """Every longer write fails, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_where_the_disk_takes_no_more_it_says_so_and_goes_on_once_there_is_room(tmp_path: Path) -> None:
    contract, said = MOVED, []
    for size in range(0, 3000, 250):
        lake = Lake(str(tmp_path / f"lake {size}"))
        land(lake, FIRST, rows(FIRST, ("a", 1), ("b", 2), ("c", 3)))
        try:
            with no_file_longer_than(size):
                migrate(lake, [contract])
        except LakeError as error:
            said.append(str(error))
        migrate(lake, [contract])
        assert content(lake, contract) == expected(contract)
        assert constraints(lake.open(contract)) >= {rule.id for rule in contract.row_rules}
    assert 0 < len(said) < 12
    assert all("too large" in each and each.isprintable() for each in said)


def _migrate_when_told(uri: str, contract: Contract, barrier: Any) -> None:
    barrier.wait()
    migrate(Lake(uri), [contract])


def test_two_who_migrate_at_once_do_it_once(lake: Lake) -> None:
    contract = MOVED
    context = process_context()
    barrier = context.Barrier(2)
    both = [context.Process(target=_migrate_when_told, args=(lake.uri, contract, barrier)) for _ in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join()
    assert [process.exitcode for process in both] == [0, 0]
    assert content(lake, contract) == expected(contract)
    writes = [entry for entry in lake.open(contract).history() if entry["operation"] == "WRITE"]
    modes = [entry["operationParameters"]["mode"] for entry in writes]
    assert len([mode for mode in modes if mode != "Append"]) == 1  # by which the rows had landed


def test_what_another_migrated_and_wrote_since_is_not_migrated_over(lake: Lake) -> None:
    """Somebody else migrates, and lands a row, after the rows were read and before they are written."""
    write = migrations.write_deltalake  # type: ignore[attr-defined]

    def overtaken(*args: Any, **kwargs: Any) -> None:
        with patch.object(migrations, "write_deltalake", write):
            migrate(lake, [LONG])
        land(lake, LONG, rows(LONG, ("d", "size", 4.0)))
        write(*args, **kwargs)

    with patch.object(migrations, "write_deltalake", overtaken):
        migrate(lake, [LONG])
    assert content(lake, LONG) == sorted([*expected(LONG), ("d", "size", 4.0)])


def test_a_newer_table_is_refused(lake: Lake) -> None:
    migrate(lake, [LONG])
    for older in (FIRST, ADDED):
        for use in (lake.frame, lake.ensure, lambda contract: pending(lake, [contract])):
            with pytest.raises(NewerLakeError, match=r"schema version 3.*update evalake"):
                use(older)
    lake.open(LONG).create_checkpoint()
    with pytest.raises(NewerLakeError):
        lake.frame(FIRST)


def test_a_table_that_was_changed_without_a_migration_is_nobodys(lake: Lake) -> None:
    lake.open(FIRST).alter.add_columns([DeltaField("extra", PrimitiveType("string"))])
    with pytest.raises(SchemaMismatchError, match="extra"):
        lake.frame(FIRST)


def test_a_query_fails_only_for_the_tables_it_reads(lake: Lake) -> None:
    other = replace(FIRST, table="other")
    land(lake, other, rows(other, ("x", 9)))
    assert answered(lake, [LONG, other], "select size from other").item() == 9
    with pytest.raises(OlderLakeError, match=r"toys.*--migrate"):
        answered(lake, [LONG, other], "select * from other join toys using (key)")


def test_an_added_column_that_may_not_be_null_is_no_contract() -> None:
    with pytest.raises(ContractError, match="size may not be null"):
        replace(FIRST, changes=(Added(("size",)),))
