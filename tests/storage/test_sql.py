"""SQL: answers over the tables, and nothing else is possible."""

from pathlib import Path

import pytest

from contracts.errors import QueryError
from contracts.tables import CORE_CONTRACTS
from storage import ledger
from storage.lake import Lake
from storage.landing import land
from storage.sql import query
from tests.storage.rows import TOYS, call, toy
from tests.storage.test_landing import frame

TABLES = (*CORE_CONTRACTS, TOYS)


def test_tables_are_there_by_name_also_the_empty_ones(lake: Lake) -> None:
    land(lake, TOYS, frame(toy("a", size=2.0), toy("b", size=3.0)))
    assert query(lake, TABLES, "select sum(size) as total from toys").to_dicts() == [{"total": 5.0}]
    assert query(lake, TABLES, "select count(*) as n from runs").to_dicts() == [{"n": 0}]


def test_a_table_can_be_read_as_it_was(lake: Lake) -> None:
    land(lake, TOYS, frame(toy("a")))
    version = lake.version(TOYS)
    assert version is not None
    land(lake, TOYS, frame(toy("b")))
    assert query(lake, TABLES, "select count(*) as n from toys", versions={"toys": version}).to_dicts() == [{"n": 1}]
    assert query(lake, TABLES, "select count(*) as n from toys").to_dicts() == [{"n": 2}]


def test_replies_shows_the_reply_of_each_key(lake: Lake) -> None:
    ledger.append(lake, [call(1, response="first")])
    ledger.append(lake, [call(1, response="second")])
    assert query(lake, TABLES, "select response from replies").to_dicts() == [{"response": "first"}]
    assert query(lake, TABLES, "select count(*) as n from calls").to_dicts() == [{"n": 2}]


@pytest.mark.parametrize("statement", ["", "select nothing", "selec 1", "select * from nowhere", "select 1; selec 2"])
def test_a_wrong_query_is_one_clear_line(lake: Lake, statement: str) -> None:
    if statement == "":
        assert query(lake, TABLES, statement).is_empty()
        return
    with pytest.raises(QueryError, match="the query failed") as error:
        query(lake, TABLES, statement)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "attempt",
    [
        "copy (select 1) to '{out}'",
        "copy toys to '{out}' (format parquet)",
        "with x as (select 1) select * from read_csv('{secret}')",
        "select * from read_text('{secret}')",
        "select * from read_blob('{secret}')",
        "select * from glob('{folder}/*')",
        "select * from '{secret}'",
        "select * from parquet_scan('{secret}')",
        "attach '{out}' as other",
        "export database '{out}'",
        "import database '{folder}'",
        "install httpfs",
        "load httpfs",
        "set memory_limit = '100GB'",
        "set enable_external_access = true",
        "reset lock_configuration",
        "pragma memory_limit = '100GB'",
        "set temp_directory = '{folder}'",
        "select * from read_csv('http://127.0.0.1:9/x')",
        "create secret s (type s3, key_id 'a', secret 'b')",
    ],
)
def test_files_network_extensions_and_settings_are_out_of_reach(lake: Lake, tmp_path: Path, attempt: str) -> None:
    land(lake, TOYS, frame(toy("a")))
    secret, out = tmp_path / "secret.csv", tmp_path / "out"
    secret.write_text("password\nhunter2\n")
    with pytest.raises(QueryError):
        query(lake, TABLES, attempt.format(out=out, secret=secret, folder=tmp_path))
    assert not out.exists()


def test_python_variables_are_not_tables(lake: Lake) -> None:
    hidden = frame(toy("a"))
    with pytest.raises(QueryError, match="hidden"):
        query(lake, TABLES, "select * from hidden")
    assert hidden.height == 1


def test_a_query_that_would_not_end_is_stopped(lake: Lake) -> None:
    with pytest.raises(QueryError, match="time limit"):
        query(lake, TABLES, "select count(*) from range(10000000000) a, range(10000) b", time_limit_seconds=0.5)


def test_a_query_that_wants_too_much_memory_is_refused(lake: Lake) -> None:
    with pytest.raises(QueryError, match=r"(?i)memory"):
        query(lake, TABLES, "select list(i) from range(100000000) t(i)", memory_limit="50MB", time_limit_seconds=60)


def test_an_unknown_table_to_pin_is_named(lake: Lake) -> None:
    with pytest.raises(QueryError, match="nowhere"):
        query(lake, TABLES, "select 1", versions={"nowhere": 1})
