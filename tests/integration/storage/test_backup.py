"""A backup goes on from the one before it, holds every committed row, and refuses what it would spoil."""

import shutil
from pathlib import Path

import polars as pl
import pytest

from evalake.admin.check import check_lake
from evalake.admin.import_results import import_recorded
from evalake.contracts.tables import CALLS, CONTRACT_CHECKS, RUNS
from evalake.core.errors import LakeError, UsageError
from evalake.storage.backup import back_up
from evalake.storage.lake import Lake
from evalake.suites.command_guard.contract import RESULTS
from evalake.suites.registry import all_contracts, suite
from tests.integration.cli.command import recorded


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with one import, of a model whose name is escaped in the paths of its partition."""
    folder = tmp_path_factory.mktemp("imported")
    add(Lake(str(folder / "lake")), folder, 0)
    return folder / "lake"


@pytest.fixture
def lake(imported: Path, tmp_path: Path) -> Lake:
    """A copy of it."""
    return Lake(str(shutil.copytree(imported, tmp_path / "my lake")))


def add(lake: Lake, folder: Path, first: int) -> None:
    """Import eight more results."""
    (folder / "results.jsonl").write_text("\n".join(recorded(n) for n in range(first, first + 8)))
    import_recorded(lake, suite("command_guard"), [folder / "results.jsonl"])


def findings(lake: Lake) -> list[object]:
    return [finding for table in check_lake(lake) for finding in table.findings]


def test_a_copy_is_in_order_and_only_what_is_new_is_copied_the_next_time(lake: Lake, tmp_path: Path) -> None:
    copy = Lake(str(tmp_path / "backups" / "copy"))
    first = {done.table: done for done in back_up(lake, copy, all_contracts())}
    assert first[RESULTS.table].files_there == 0
    assert findings(copy) == []  # which writes to the copy's contract_checks
    add(lake, tmp_path, 8)
    assert findings(lake) == []
    second = {done.table: done for done in back_up(lake, copy, all_contracts())}
    assert second[RESULTS.table].files_there == first[RESULTS.table].files_copied
    assert second[RESULTS.table].version == lake.version(RESULTS)
    assert findings(copy) == []
    for contract in (RESULTS, CALLS, RUNS):
        assert copy.frame(contract).collect().sort(pl.all()).equals(lake.frame(contract).collect().sort(pl.all()))
    third = back_up(lake, copy, all_contracts())
    assert {done.table for done in third if done.files_copied} <= {CONTRACT_CHECKS.table}


def test_a_backup_that_was_cut_off_is_taken_up_by_the_next(lake: Lake, tmp_path: Path) -> None:
    copy = Lake(str(tmp_path / "copy"))
    back_up(lake, copy, all_contracts())
    for file in sorted(Path(copy.location(RESULTS)).rglob("*.parquet"))[:1]:
        file.write_bytes(file.read_bytes()[:10])
    for file in Path(copy.location(CALLS), "_delta_log").iterdir():
        file.unlink()
    back_up(lake, copy, all_contracts())
    assert findings(copy) == []


def test_a_lake_that_has_lost_rows_does_not_spoil_its_backup(lake: Lake, tmp_path: Path) -> None:
    copy = Lake(str(tmp_path / "copy"))
    add(lake, tmp_path, 8)
    back_up(lake, copy, all_contracts())
    shutil.rmtree(lake.location(RESULTS))
    lake.ensure(RESULTS)
    before = copy.frame(RESULTS).collect().height
    with pytest.raises(LakeError, match="log entries of command_guard_results that the lake lacks"):
        back_up(lake, copy, all_contracts())
    assert copy.frame(RESULTS).collect().height == before == 16


def test_a_lake_is_not_its_own_backup(lake: Lake) -> None:
    with pytest.raises(UsageError, match="cannot be the lake itself"):
        back_up(lake, Lake(lake.uri + "/"), all_contracts())
