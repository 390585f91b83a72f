"""Commits: retried, joined and copied."""

import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from deltalake.exceptions import CommitFailedError, DeltaError

from evalake.admin.check import check_lake
from evalake.admin.import_results import import_recorded
from evalake.contracts.tables import CALLS, CONTRACT_CHECKS, RUNS
from evalake.core.errors import ContractError, LakeError, UsageError
from evalake.storage import landing
from evalake.storage.backup import back_up
from evalake.storage.lake import Lake
from evalake.storage.landing import commit, land
from evalake.storage.ledger import join_files
from evalake.storage.maintenance import maintain
from evalake.suites.command_guard.contract import RESULTS
from evalake.suites.registry import all_contracts, suite
from tests.integration.cli.command import recorded
from tests.integration.storage.rows import TOYS, toy
from tests.processes import process_context

# A change that lost a race is made again, and what the engine says of a refused row goes no further.

WORDS: dict[str, Any] = {"busy": "others come first", "failed": "it cannot be written"}


def test_a_change_that_lost_races_is_made_again() -> None:
    errors = [CommitFailedError("lost"), CommitFailedError("lost")]

    def change() -> str:
        if errors:
            raise errors.pop()
        return "done"

    assert commit(change, **WORDS) == "done"


def test_who_loses_every_race_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landing, "PATIENCE_SECONDS", 0)

    def change() -> None:
        raise CommitFailedError("lost")

    with pytest.raises(LakeError, match=r"^others come first$"):
        commit(change, **WORDS)


def test_a_refused_row_is_not_quoted() -> None:
    def change() -> None:
        raise DeltaError("failed validation check: {'secret': 'hunter2'}")

    with pytest.raises(ContractError, match=r"^a row is refused$") as caught:
        commit(change, **WORDS, refused="a row is refused")
    assert caught.value.__cause__ is None


def test_what_else_fails_is_said_with_the_engines_words() -> None:
    def change() -> None:
        raise OSError("disk full")

    with pytest.raises(LakeError, match=r"^it cannot be written: disk full$"):
        commit(change, **WORDS, refused="a row is refused")


# Compactions that meet: one is refused, and no row is doubled.

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


# A backup goes on from the one before it, holds every committed row, and refuses what it would spoil.


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with one import, of a model whose name is escaped in the paths of its partition."""
    folder = tmp_path_factory.mktemp("imported")
    add(Lake(str(folder / "lake")), folder, 0)
    return folder / "lake"


@pytest.fixture
def whole(imported: Path, tmp_path: Path) -> Lake:
    """A copy of it."""
    return Lake(str(shutil.copytree(imported, tmp_path / "my lake")))


def add(lake: Lake, folder: Path, first: int) -> None:
    """Import eight more results."""
    (folder / "results.jsonl").write_text("\n".join(recorded(n) for n in range(first, first + 8)))
    import_recorded(lake, suite("command_guard"), [folder / "results.jsonl"])


def findings(lake: Lake) -> list[object]:
    return [finding for table in check_lake(lake) for finding in table.findings]


def test_a_copy_is_in_order_and_only_what_is_new_is_copied_the_next_time(whole: Lake, tmp_path: Path) -> None:
    copy = Lake(str(tmp_path / "backups" / "copy"))
    first = {done.table: done for done in back_up(whole, copy, ())}  # also tables without code here
    assert first[RESULTS.table].files_there == 0
    assert findings(copy) == []  # which writes to the copy's contract_checks
    add(whole, tmp_path, 8)
    assert findings(whole) == []
    second = {done.table: done for done in back_up(whole, copy, all_contracts())}
    assert second[RESULTS.table].files_there == first[RESULTS.table].files_copied
    assert second[RESULTS.table].version == whole.version(RESULTS)
    assert findings(copy) == []
    for contract in (RESULTS, CALLS, RUNS):
        assert copy.frame(contract).collect().sort(pl.all()).equals(whole.frame(contract).collect().sort(pl.all()))
    third = back_up(whole, copy, all_contracts())
    assert {done.table for done in third if done.files_copied} <= {CONTRACT_CHECKS.table}


def test_a_backup_that_was_cut_off_is_taken_up_by_the_next(whole: Lake, tmp_path: Path) -> None:
    copy = Lake(str(tmp_path / "copy"))
    back_up(whole, copy, all_contracts())
    for file in sorted(Path(copy.location(RESULTS)).rglob("*.parquet"))[:1]:
        file.write_bytes(file.read_bytes()[:10])
    for file in Path(copy.location(CALLS), "_delta_log").iterdir():
        file.unlink()
    back_up(whole, copy, all_contracts())
    assert findings(copy) == []


def test_a_lake_that_has_lost_rows_does_not_spoil_its_backup(whole: Lake, tmp_path: Path) -> None:
    copy = Lake(str(tmp_path / "copy"))
    add(whole, tmp_path, 8)
    back_up(whole, copy, all_contracts())
    shutil.rmtree(whole.location(RESULTS))
    whole.ensure(RESULTS)
    before = copy.frame(RESULTS).collect().height
    with pytest.raises(LakeError, match="log entries of command_guard_results that the lake lacks"):
        back_up(whole, copy, all_contracts())
    assert copy.frame(RESULTS).collect().height == before == 16


def test_a_lake_is_not_its_own_backup(whole: Lake) -> None:
    with pytest.raises(UsageError, match="cannot be the lake itself"):
        back_up(whole, Lake(whole.uri + "/"), all_contracts())
