"""Tables for the engine: whatever lake and files they lie in, with limits and conditions that reach the files."""

from pathlib import Path

import pytest

from evalake.contracts.tables import CORE_CONTRACTS
from evalake.core.errors import QueryError
from evalake.storage import ledger
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.storage.migrations import migrate
from evalake.storage.sql.query import query
from evalake.storage.sql.start import MEGABYTE, Limits
from tests.integration.storage.rows import TOYS, call, toy
from tests.integration.storage.test_landing import frame
from tests.integration.storage.test_migrations import ADDED, FIRST, rows

SMALL = Limits(memory=64 * MEGABYTE, spare=192 * MEGABYTE)


@pytest.mark.parametrize("folder", ["my lake", "that's a lake", "lake ümlaut", "a*b?c{d", "50%"])
def test_a_lake_may_lie_in_any_folder(tmp_path: Path, folder: str) -> None:
    lake = Lake(str(tmp_path / folder))
    land(lake, TOYS, frame(toy("a"), toy("b")))
    assert query(lake, [TOYS], "select key from toys order by key").rows() == [("a",), ("b",)]


@pytest.mark.parametrize("model", ["openai/gpt-4o", "a b+c%2Fd", "größe", "x=y", "2024-01-01", "7", "it's"])
def test_what_a_folder_is_named_after_is_told_as_it_landed(lake: Lake, model: str) -> None:
    land(lake, TOYS, frame(toy("a", model=model), toy("b")))
    assert query(lake, [TOYS], "from toys where key = 'a'").rows() == [("a", model, "final", 1.0)]


def test_rows_from_before_a_column_was_added_have_nothing_in_it(lake: Lake) -> None:
    land(lake, FIRST, rows(FIRST, ("a", 1)))
    migrate(lake, [ADDED])
    assert query(lake, [ADDED], "from toys").rows() == [("a", 1, None)]
    land(lake, ADDED, rows(ADDED, ("b", 2, "red")))
    assert query(lake, [ADDED], "from toys order by key").rows() == [("a", 1, None), ("b", 2, "red")]
    assert query(lake, [ADDED], "from toys", versions={"toys": 0}).is_empty()


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
    for sql in ("from TOYS", "from main.toys", "with t as (from toys) from t", "from query('from toys')"):
        assert query(lake, [TOYS], sql).height == 1, sql


def test_a_broken_file_fails_only_queries_of_its_table(lake: Lake) -> None:
    land(lake, TOYS, frame(toy("a")))
    ledger.append(lake, [call(1)])
    (file,) = Path(lake.uri).glob("toys/*/*.parquet")
    file.write_bytes(b"torn")
    assert query(lake, [*CORE_CONTRACTS, TOYS], "select count(*) from replies").item() == 1
    assert query(lake, [*CORE_CONTRACTS, TOYS], "select count(*) from duckdb_views() where not internal").item()
    with pytest.raises(QueryError):
        query(lake, [*CORE_CONTRACTS, TOYS], "from toys")
