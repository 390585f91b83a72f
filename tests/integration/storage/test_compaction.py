"""Compactions that meet: one is refused, and no row is doubled."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from deltalake.exceptions import CommitFailedError

from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.storage.ledger import join_files
from evalake.storage.maintenance import maintain
from tests.integration.storage.rows import TOYS, toy
from tests.processes import process_context

KEYS = ["a", "b", "c", "d"]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A lake whose toys are in four files."""
    lake = Lake(str(tmp_path / "lake"))
    for key in KEYS:
        land(lake, TOYS, pl.DataFrame([toy(key)]))
    return lake


def keys(lake: Lake) -> list[str]:
    return sorted(lake.frame(TOYS).collect()["key"])


def test_of_two_that_began_on_the_same_files_one_is_refused(lake: Lake) -> None:
    first, second = lake.open(TOYS), lake.open(TOYS)
    join_files(first)
    with pytest.raises(CommitFailedError):
        join_files(second)
    assert keys(lake) == KEYS


def test_one_that_another_overtook_between_its_two_commits_is_refused(lake: Lake) -> None:
    first = lake.open(TOYS)
    first.alter.set_table_properties({"evalake.compaction": "first"}, raise_if_not_exists=False)
    join_files(lake.open(TOYS))
    with pytest.raises(CommitFailedError):
        first.optimize.compact()
    assert keys(lake) == KEYS


def test_rows_that_come_meanwhile_are_kept(lake: Lake) -> None:
    table = lake.open(TOYS)
    table.alter.set_table_properties({"evalake.compaction": "first"}, raise_if_not_exists=False)
    land(lake, TOYS, pl.DataFrame([toy("e")]))
    table.optimize.compact()
    assert keys(lake) == [*KEYS, "e"]


def test_a_table_of_one_file_is_left_alone(lake: Lake) -> None:
    join_files(lake.open(TOYS))
    version = lake.version(TOYS)
    join_files(lake.open(TOYS))
    assert lake.version(TOYS) == version


def _maintain_when_told(uri: str, barrier: Any) -> None:
    barrier.wait()
    maintain(Lake(uri), [TOYS])


def test_maintenance_by_several_processes_at_once_doubles_no_row(lake: Lake) -> None:
    context = process_context()
    barrier = context.Barrier(3)
    processes = [context.Process(target=_maintain_when_told, args=(lake.uri, barrier)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert keys(lake) == KEYS
