"""Tables as queries see them: their catalogue, rows and files."""

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

from evalake.contracts.tables import CORE_CONTRACTS
from evalake.core.errors import QueryError, UsageError
from evalake.core.hashing import plain
from evalake.storage import ledger
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.storage.migrations import migrate
from evalake.storage.sql.catalogue import catalogue, column_frame
from evalake.storage.sql.query import query
from evalake.storage.sql.start import MEGABYTE, Limits
from evalake.storage.sql.views import views
from evalake.suites.registry import all_contracts
from tests.integration.storage.rows import TOYS, call, toy
from tests.integration.storage.sql.engine import answered
from tests.integration.storage.test_landing import frame
from tests.integration.storage.test_migrations import ADDED, FIRST, rows

# Tables for the engine: whatever lake and files they lie in, with limits and conditions that reach the files.

SMALL = Limits(memory=64 * MEGABYTE, spare=192 * MEGABYTE)


@pytest.mark.parametrize("folder", ["my lake", "that's a lake", "lake ümlaut", "a*b?c{d", "50%"])
def test_a_lake_may_lie_in_any_folder(tmp_path: Path, folder: str) -> None:
    lake = Lake(str(tmp_path / folder))
    land(lake, TOYS, frame(toy("a"), toy("b")))
    assert query(lake, [TOYS], "select key from toys order by key").rows() == [("a",), ("b",)]


@pytest.mark.parametrize("model", ["openai/gpt-4o", "a b+c%2Fd", "größe", "x=y", "2024-01-01", "7", "it's"])
def test_what_a_folder_is_named_after_is_told_as_it_landed(lake: Lake, model: str) -> None:
    land(lake, TOYS, frame(toy("a", model=model), toy("b")))
    assert answered(lake, [TOYS], "from toys where key = 'a'").rows() == [("a", model, "final", 1.0)]


def test_rows_from_before_a_column_was_added_have_nothing_in_it(lake: Lake) -> None:
    land(lake, FIRST, rows(FIRST, ("a", 1)))
    migrate(lake, [ADDED])
    assert answered(lake, [ADDED], "from toys").rows() == [("a", 1, None)]
    land(lake, ADDED, rows(ADDED, ("b", 2, "red")))
    assert answered(lake, [ADDED], "from toys order by key").rows() == [("a", 1, None), ("b", 2, "red")]
    assert answered(lake, [ADDED], "from toys", versions={"toys": 0}).is_empty()


@pytest.mark.parametrize("asked", ["calls limit 5", "replies limit 5", "replies where replicate = 3 limit 1"])
def test_a_limit_reaches_the_files(lake: Lake, asked: str) -> None:
    for number in range(30):
        ledger.append(lake, [call(number, replicate, response="long " * 200_000) for replicate in range(10)])
    wanted = f"select prompt_hash, length(response) as length from {asked}"
    assert set(query(lake, CORE_CONTRACTS, wanted, limits=SMALL)["length"]) == {1_000_000}


def test_files_of_a_table_that_are_no_more_part_of_it_are_out_of_reach(lake: Lake) -> None:
    land(lake, TOYS, frame(toy("a", state="early")))
    (before,) = Path(lake.uri).glob("toys/*/*.parquet")
    land(lake, TOYS, frame(toy("a", state="final")))
    with pytest.raises(QueryError):
        query(lake, [TOYS], f"from read_parquet('{before}')")
    assert query(lake, [TOYS], "select state from toys").rows() == [("final",)]


def test_a_query_reads_its_tables_however_it_names_them(lake: Lake) -> None:
    land(lake, TOYS, frame(toy("a")))
    for sql in ("from TOYS", "from main.toys", "with t as (from toys) from t"):
        assert answered(lake, [TOYS], sql).height == 1, sql


def test_a_broken_file_fails_only_queries_of_its_table(lake: Lake) -> None:
    land(lake, TOYS, frame(toy("a")))
    ledger.append(lake, [call(1)])
    (file,) = Path(lake.uri).glob("toys/*/*.parquet")
    file.write_bytes(b"torn")
    assert answered(lake, [*CORE_CONTRACTS, TOYS], "select count(*) from replies").item() == 1
    assert answered(lake, [*CORE_CONTRACTS, TOYS], "select count(*) from duckdb_views() where not internal").item()
    with pytest.raises(QueryError):
        answered(lake, [*CORE_CONTRACTS, TOYS], "from toys")


# The catalogue describes every table and view as its contract does, with the types that a query meets.

TABLES = all_contracts()
VIEWS = views(TABLES)


def test_the_catalogue_describes_every_column_as_its_contract_does() -> None:
    entries = {entry.name: entry for entry in catalogue(TABLES)}
    assert list(entries) == [*(contract.table for contract in TABLES), *(view.name for view in VIEWS)]
    for contract in TABLES:
        entry = entries[contract.table]
        assert (entry.kind, entry.key) == ("table", contract.key)
        described = [(each.column, each.nullable, each.description) for each in entry.columns]
        assert described == [(each.name, each.nullable, each.description) for each in contract.columns]
    (cost,) = (each for each in entries["calls"].columns if each.column == "cost_usd")
    assert (cost.type, cost.nullable, cost.key) == ("DOUBLE", True, False)
    assert "cost_usd is at least 0" in cost.rules
    assert "no two rows agree in run_id" in entries["runs"].rules
    assert entries["leaderboard"].kind == "view"


def test_types_are_those_a_query_meets(lake: Lake) -> None:
    full = column_frame(catalogue(TABLES))
    met = answered(
        lake, TABLES, "select table_name, column_name, data_type from duckdb_columns() where not internal"
    ).rows()
    assert set(full.select("table", "column", "type").iter_rows()) == set(met)
    types = dict(full.filter(pl.col("table") == "runs").select("column", "type").iter_rows())
    assert types["models"] == "VARCHAR[]"
    assert types["started_at"] == "TIMESTAMP WITH TIME ZONE"


def test_one_table_is_described_by_its_name_and_an_unknown_one_is_told_with_what_there_is() -> None:
    (runs,) = catalogue(TABLES, "runs")
    assert (runs.name, runs.columns[0].column) == ("runs", "run_id")
    with pytest.raises(UsageError, match=r"no table or view is called rnus; did you mean runs"):
        catalogue(TABLES, "rnus")


# Rows for machines: every kind of value in JSON, CSV and Parquet, and frames as parts of one table.


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (float("nan"), None),
        (float("-inf"), None),
        (True, True),
        (b"\x00\xff", "00ff"),
        (Decimal("1.50"), "1.50"),
        (date(2026, 1, 2), "2026-01-02"),
        ({"a": [datetime(2026, 1, 2, tzinfo=UTC)]}, {"a": ["2026-01-02T00:00:00+00:00"]}),
    ],
)
def test_a_value_is_one_that_json_has(value: object, told: object) -> None:
    assert plain(value) == told
