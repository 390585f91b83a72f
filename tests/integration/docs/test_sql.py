"""docs/sql.md is true: its queries find something, its views are all there, other engines read the tables."""

import json
import re
import shlex
from pathlib import Path

import polars as pl
import pytest
from deltalake import DeltaTable

from evalake.contracts.tables import METRIC_SNAPSHOTS
from evalake.storage.lake import Lake
from evalake.storage.sql.views import views
from evalake.suites.registry import all_contracts
from tests.integration.cli.command import evalake_here
from tests.integration.storage.sql.engine import answered

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "sql.md").read_text(encoding="utf-8")
QUERIES = re.findall(r"```sql\n(.*?)```", PAGE, flags=re.DOTALL)
COMMANDS = re.findall(r"^    (evalake (?:\S| (?! ))+)", PAGE, flags=re.MULTILINE)  # up to the words that explain them

# What the page promises; readers of version 1 and writers of version 4 are the oldest that are still about.
NEWEST_READER, NEWEST_WRITER = 1, 3


@pytest.fixture(scope="module")
def lake(recorded_runs: Lake) -> Lake:
    return recorded_runs


def test_there_are_queries_to_learn_from() -> None:
    assert len(QUERIES) >= 12
    assert PAGE.count("```") == 2 * len(QUERIES)


@pytest.mark.parametrize("sql", QUERIES, ids=[" ".join(sql.split())[:60] for sql in QUERIES])
def test_every_query_of_the_page_runs_and_finds_something(lake: Lake, sql: str) -> None:
    assert answered(lake, all_contracts(), sql).height > 0


def test_there_are_commands_to_learn_from() -> None:
    assert len(COMMANDS) == 8
    assert {"--at", "--out", "--describe", "--format"} <= {word for line in COMMANDS for word in shlex.split(line)}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_of_the_page_prints_something(lake: Lake, tmp_path: Path, command: str) -> None:
    done = evalake_here(*shlex.split(command)[1:], folder=tmp_path, EVALAKE_LAKE=lake.uri)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip()
    if "--out" in command:
        assert pl.read_parquet(tmp_path / "replies.parquet").height > 0


def test_the_command_describes_every_table_and_view(lake: Lake, tmp_path: Path) -> None:
    done = evalake_here("tables", "--describe", "--format", "json", "--lake", lake.uri, folder=tmp_path)
    entries = {entry["name"]: entry for entry in json.loads(done.stdout)}
    expected = [contract.table for contract in all_contracts()] + [view.name for view in views(all_contracts())]
    assert list(entries) == expected
    for entry in entries.values():
        assert entry["description"]
        assert all(column["type"] and column["description"] for column in entry["columns"])
    assert entries["runs"]["key"] == ["run_id"]


def test_views_answer_from_the_version_that_is_asked_for(lake: Lake) -> None:
    newest = lake.version(METRIC_SNAPSHOTS)
    assert newest is not None
    count = "select count(*) as n from metric_history where suite = 'command_guard'"
    now = answered(lake, all_contracts(), count)["n"].item()
    answers = [
        answered(lake, all_contracts(), count, versions={"metric_snapshots": version})["n"].item()
        for version in range(newest + 1)
    ]
    assert answers == sorted(answers)
    assert (answers[0], answers[-1]) == (0, now)
    assert len(set(answers)) > 2  # before the first import, between the two, and after


def test_the_page_names_every_view() -> None:
    named = re.findall(r"^\| `(\w+)` \|", PAGE, flags=re.MULTILINE)
    assert sorted(named) == sorted(view.name for view in views(all_contracts()))


def test_the_log_of_every_table_asks_no_more_of_readers_than_the_page_says(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    for contract in all_contracts():
        lake.ensure(contract)
        found = _protocols(Path(lake.location(contract)))
        assert found, contract.table
        for protocol in found:
            assert protocol["minReaderVersion"] == NEWEST_READER, contract.table
            assert protocol["minWriterVersion"] <= NEWEST_WRITER, contract.table
            assert not protocol.get("readerFeatures")
            assert not protocol.get("writerFeatures")


def test_writing_raises_no_protocol(lake: Lake) -> None:
    for log in Path(lake.uri).glob("*/_delta_log"):
        for protocol in _protocols(log.parent):
            assert (protocol["minReaderVersion"], protocol["minWriterVersion"]) <= (NEWEST_READER, NEWEST_WRITER)


def _protocols(table: Path) -> list[dict[str, int]]:
    files = sorted(table.glob("_delta_log/*.json"))
    lines = [line for file in files for line in file.read_text(encoding="utf-8").split("\n") if line]
    return [action["protocol"] for action in map(json.loads, lines) if "protocol" in action]


def test_polars_and_pandas_read_the_tables_as_the_page_says(lake: Lake) -> None:
    place = f"{lake.uri}/metric_snapshots"
    rows = answered(lake, all_contracts(), "select count(*) as n from metric_snapshots")["n"].item()
    assert pl.scan_delta(place).collect().height == rows
    assert len(DeltaTable(place).to_pandas()) == rows
