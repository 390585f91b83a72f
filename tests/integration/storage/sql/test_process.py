"""The process of a query: nothing outside its tables is in reach, and it keeps to its time and memory."""

import os
import resource
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from evalake.contracts.tables import CORE_CONTRACTS
from evalake.core.errors import QueryError
from evalake.storage.lake import Lake
from evalake.storage.sql.query import query
from evalake.storage.sql.start import MEGABYTE, Limits
from tests.cases import cases_beside
from tests.integration.storage.rows import TOYS, toy
from tests.integration.storage.sql.engine import answered
from tests.integration.storage.test_landing import frame

CASES = cases_beside(__file__, "attempts.json")

TABLES = (*CORE_CONTRACTS, TOYS)

SMALL = Limits(seconds=2.0, memory=64 * MEGABYTE, spare=192 * MEGABYTE, rows=10_000, result=8 * MEGABYTE)


@pytest.mark.parametrize("kind", ["files", "writes", "changes"])
def test_files_settings_and_extensions_are_out_of_reach(toys: Lake, tmp_path: Path, kind: str) -> None:
    """By the engine alone, which nothing confines here; and one of each kind in the process of a query."""
    secret, out = tmp_path / "secret.csv", tmp_path / "out"
    secret.write_text("password\nhunter2\n")
    for ask, attempt in [*((answered, each) for each in CASES[kind]), (query, CASES[kind][0])]:
        sql = attempt.format(out=out, secret=secret, folder=tmp_path)
        with pytest.raises(QueryError) as error:
            ask(toys, TABLES, sql, limits=SMALL)
        assert "hunter2" not in str(error.value), sql
        assert sorted(each.name for each in tmp_path.iterdir()) == ["secret.csv"], sql


def test_the_files_of_the_lake_itself_are_read_only(toys: Lake) -> None:
    (file,) = Path(toys.open(TOYS).file_uris()[0]).parent.glob("*.parquet")
    before = file.read_bytes()
    for attempt in CASES["writes"]:
        with pytest.raises(QueryError):
            answered(toys, TABLES, f"{attempt.format(out=file, folder=file.parent)} -- toys", limits=SMALL)
        assert file.read_bytes() == before, attempt


def test_the_network_is_out_of_reach(toys: Lake) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        for attempt in (
            "select * from read_csv('http://127.0.0.1:{port}/x')",
            "select * from 'http://127.0.0.1:{port}/x.csv'",
            "select * from read_csv('s3://127.0.0.1:{port}/x')",
            "select * from postgres_scan('host=127.0.0.1 port={port}', 'a', 'b')",
            "select http_get('http://127.0.0.1:{port}/x')",
        ):
            with pytest.raises(QueryError):
                answered(toys, TABLES, attempt.format(port=server.getsockname()[1]), limits=SMALL)
        with pytest.raises(BlockingIOError):
            server.accept()


@pytest.mark.parametrize("attempt", CASES["process"])
def test_the_process_is_out_of_reach(toys: Lake, monkeypatch: pytest.MonkeyPatch, attempt: str) -> None:
    monkeypatch.setenv("EVALAKE_PLANTED", "hunter2")
    with pytest.raises(QueryError) as error:
        query(toys, TABLES, attempt, limits=SMALL)
    assert "hunter2" not in str(error.value)
    assert str(Path.home()) not in str(error.value)


def test_the_environment_is_in_no_table_of_the_engine(toys: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "hunter2")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter3")
    tables = (
        "duckdb_settings()",
        "duckdb_secrets()",
        "duckdb_variables()",
        "duckdb_views()",
        "duckdb_databases()",
        "duckdb_logs()",
        "which_secret('s3://bucket/x', 's3')",
        "information_schema.tables",
    )
    every = " union all ".join(f"select to_json(t) as row from {table} t" for table in tables)
    found = str(query(toys, TABLES, every).rows())
    assert "memory_limit" in found
    assert "hunter" not in found
    assert str(Path.home()) not in found


def test_python_variables_are_not_tables(toys: Lake) -> None:
    hidden = frame(toy("a"))
    with pytest.raises(QueryError, match="hidden"):
        answered(toys, TABLES, "select * from hidden")
    assert hidden.height == 1


# Those that the engine's own interrupt would stop, and single calls that it would not.
ENDLESS = [
    "select count(*) from range(10000000000) a, range(10000) b",
    "select levenshtein(repeat('a', 1000000), repeat('b', 1000000))",
    "select 1 union all " + " union all ".join(["select 1"] * 20_000),
    "select range from range(10000000000) where hash(range) = 1",  # while rows are fetched
]


@pytest.mark.parametrize("endless", ENDLESS, ids=[each[:60] for each in ENDLESS])
def test_a_query_that_would_not_end_is_stopped(toys: Lake, endless: str) -> None:
    with pytest.raises(QueryError, match="stopped at its time limit of 1 s"):
        query(toys, TABLES, endless, limits=Limits(seconds=1.0))


def test_one_time_limit_holds_from_the_start_of_the_process(toys: Lake) -> None:
    with pytest.raises(QueryError, match=r"stopped at its limit of 0\.01 s from"):
        query(toys, TABLES, "select 1", limits=Limits(whole=0.01))  # Python has not started by then


def test_the_query_has_what_opening_the_tables_has_left_of_the_time(toys: Lake) -> None:
    with pytest.raises(QueryError, match="stopped at its limit of 4 s from"):
        query(toys, TABLES, ENDLESS[0], limits=Limits(seconds=600, whole=4))


GREEDY = [
    "select length(range(500000000))",
    "select string_agg(repeat('x', 1000000)) from range(100000)",
    "select regexp_replace(repeat('a', 200000000), '(a*)*b', 'x')",
    "select * from range(100000000000) order by range desc",
    "with x as materialized (select repeat('x', 1000) from range(100000000)) select count(*) from x a, x b",
    "select " + "(" * 100_000 + "1" + ")" * 100_000,
    "select json('" + "[" * 2_000_000 + "')",
]


@pytest.fixture(scope="module")
def memory_is_held() -> Iterator[None]:
    """Hold the memory of all queries meanwhile to the limit."""
    before = _largest_child()
    yield
    # What Python and the engine take before a query begins comes on top; it is less than half of a gigabyte.
    allowed = SMALL.memory + SMALL.spare + 512 * MEGABYTE
    assert _largest_child() <= max(before, allowed)


@pytest.mark.parametrize("greedy", GREEDY, ids=[each[:60] for each in GREEDY])
@pytest.mark.usefixtures("memory_is_held")
def test_memory_stays_within_the_limit(toys: Lake, greedy: str) -> None:
    with pytest.raises(QueryError):
        query(toys, TABLES, greedy, limits=SMALL)


def _largest_child() -> int:
    unit = 1 if os.uname().sysname == "Darwin" else 1024
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit


def test_going_past_the_memory_limit_says_so(toys: Lake) -> None:
    with pytest.raises(QueryError, match="needs more memory than its limit of 64 MB"):
        query(toys, TABLES, "select list(i) from range(100000000) t(i)", limits=SMALL)


@pytest.mark.parametrize(
    "large",
    [
        "select * from range(10000000)",
        "select repeat('x', 100000) from range(1000)",
    ],
)
def test_a_result_that_is_too_large_is_refused(toys: Lake, large: str) -> None:
    with pytest.raises(QueryError, match=r"the result is too large \(more than 10,000 rows or 8 MB\): aggregate"):
        query(toys, TABLES, large, limits=SMALL)


def test_a_result_may_be_as_large_as_the_limit(toys: Lake) -> None:
    assert query(toys, TABLES, "from range(10000)", limits=SMALL).height == 10_000
