"""SQL: answers over the tables, read in parts, and wrong questions in one clear line."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import pytest

from evalake.contracts.tables import CORE_CONTRACTS
from evalake.core.errors import LakeError, QueryError
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.storage.sql.query import open_query, query
from evalake.storage.sql.start import Limits, QueryProcess, start
from tests.cases import cases_beside
from tests.integration.storage.rows import TOYS, toy
from tests.integration.storage.sql.engine import answered
from tests.integration.storage.test_landing import frame

CASES = cases_beside(__file__, "statements.json")

TABLES = (*CORE_CONTRACTS, TOYS)

ENDLESS = "select count(*) from range(10000000000) a, range(10000) b"


def test_a_version_that_does_not_exist_is_named(lake: Lake) -> None:
    land(lake, TOYS, frame(toy("a")))
    newest = lake.version(TOYS)
    with pytest.raises(LakeError, match=f"the table toys has no version 99: its newest is {newest}"):
        query(lake, TABLES, "select 1", versions={"toys": 99})
    with pytest.raises(LakeError, match="the table toys has no version -1"):
        query(lake, TABLES, "select 1", versions={"toys": -1})
    with pytest.raises(LakeError, match="has no table runs"):
        query(lake, TABLES, "select 1", versions={"runs": 0})
    with pytest.raises(QueryError, match="no table is called nowhere"):
        query(lake, TABLES, "select 1", versions={"nowhere": 1})


@pytest.mark.parametrize("statement", CASES["asked"])
def test_every_way_of_asking_is_answered(toys: Lake, statement: str) -> None:
    assert answered(toys, TABLES, statement).height > 0


def test_a_table_is_found_whose_name_is_made_by_an_expression(toys: Lake) -> None:
    direct = answered(toys, TABLES, "select * from toys order by all")
    assert answered(toys, TABLES, "select * from query_table('to' || 'ys') order by all").equals(direct)


@pytest.mark.parametrize(
    "statement",
    ["show tables", "select table_name from information_schema.tables", "select view_name from duckdb_views()"],
)
def test_all_tables_are_told_to_who_asks_what_there_is(toys: Lake, statement: str) -> None:
    names = answered(toys, TABLES, statement).to_series().to_list()
    assert {contract.table for contract in TABLES} <= set(names)


@pytest.mark.parametrize(
    "statement",
    ["select nothing", "selec 1", "select * from nowhere", "select cast(key as int) from toys", "select 1 / '[[['"],
)
def test_a_wrong_query_is_one_clear_line(toys: Lake, statement: str) -> None:
    with pytest.raises(QueryError, match="the query failed: ") as error:
        answered(toys, TABLES, statement)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("wrong", "hint"), [("settings", "evalake tables"), ("toy", 'Did you mean "toys"'), ("nowhere", "evalake tables")]
)
def test_a_table_that_there_is_not_is_told_with_what_there_is(toys: Lake, wrong: str, hint: str) -> None:
    with pytest.raises(QueryError, match=f"Table with name {wrong} does not exist.*{hint}") as error:
        answered(toys, TABLES, f"select * from {wrong}")
    assert "pg_" not in str(error.value)


@pytest.mark.parametrize("statement", ["", " ; ", "-- nothing", "select 1; select 2", "select 1; drop view toys"])
def test_there_is_one_query_at_a_time(toys: Lake, statement: str) -> None:
    with pytest.raises(QueryError, match="give one query"):
        answered(toys, TABLES, statement)


def test_a_column_that_tables_cannot_hold_says_what_to_do(toys: Lake) -> None:
    for column in ("interval 1 day as i where false", "[{'a': interval 1 day}]"):  # without rows Polars panics
        with pytest.raises(QueryError, match="epoch"):
            answered(toys, TABLES, f"select {column}")


def test_a_result_is_read_in_parts(toys: Lake) -> None:
    with open_query(toys, TABLES, "select range as n, repeat('x', 1000) as text from range(50000)") as result:
        parts = list(result.frames())
    assert max(part.height for part in parts) <= 2048
    assert pl.concat(parts)["n"].to_list() == list(range(50_000))
    with open_query(toys, TABLES, "select 1 as a, 2 as a where false") as result:
        assert [part.columns for part in result.frames()] == [["a", "a_1"]]


def test_what_stops_the_reading_of_a_result_stops_the_query(toys: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[QueryProcess] = []

    @contextmanager
    def noted(lake: str, limits: Limits) -> Iterator[QueryProcess]:
        with start(lake, limits) as process:
            started.append(process)
            yield process

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("evalake.storage.sql.query._copy", interrupted)
    monkeypatch.setattr("evalake.storage.sql.query.start", noted)
    with pytest.raises(KeyboardInterrupt):
        query(toys, TABLES, ENDLESS)
    assert [each.process.returncode for each in started] == [-signal.SIGKILL]


def test_a_result_that_finds_no_room_says_where(toys: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    with Path("/dev/full").open("wb", buffering=0) as full:
        monkeypatch.setattr("evalake.storage.sql.query.TemporaryFile", lambda: full)
        with pytest.raises(QueryError, match=r"the result cannot be kept in .*: No space left on device"):
            query(toys, TABLES, "from range(100000)")


def test_rows_that_are_not_read_in_time_are_not_given(toys: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_query(toys, TABLES, "from range(100000)") as result:
        parts = result.frames()
        assert next(parts).height == 2048
        monkeypatch.setattr("evalake.storage.sql.start.monotonic", lambda: time.monotonic() + Limits().whole)
        with pytest.raises(QueryError, match="stopped at its limit of 120 s from its start to its last"):
            next(parts)
        with pytest.raises(QueryError, match="stopped at its limit"):
            result.frame()


def test_columns_of_one_name_are_told_apart(toys: Lake) -> None:
    answer = answered(toys, TABLES, "select a.key, b.key, 1 as key_1 from toys a join toys b using (key)")
    assert answer.to_dicts() == [{"key": "a", "key_1": "a", "key_1_1": 1}]


def test_a_query_that_is_no_text_is_refused(toys: Lake) -> None:
    with pytest.raises(QueryError, match="not valid Unicode"):
        query(toys, TABLES, "select '\udcff'")
