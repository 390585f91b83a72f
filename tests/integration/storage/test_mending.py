"""What the check says to do mends what it found: afterwards it finds nothing."""

import shutil
from pathlib import Path

import polars as pl
import pytest
from deltalake import DeltaTable

from evalake.admin.import_results import import_recorded
from evalake.contracts.contract import Contract
from evalake.contracts.tables import METRIC_SNAPSHOTS, SAMPLES
from evalake.storage.lake import Lake
from evalake.storage.maintenance import maintain
from evalake.suites.command_guard.contract import RESULTS
from evalake.suites.registry import suite
from tests.integration.admin.test_check import around, data_file, entry, found, newest, the_finding
from tests.integration.cli.command import recorded
from tests.integration.storage.recorded_lake import lake_of_one_run

CHECKED = (SAMPLES, RESULTS, METRIC_SNAPSHOTS)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lake_of_one_run(tmp_path_factory.mktemp("mending"), 8)


@pytest.fixture
def backup(written: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(written, tmp_path / "backup"))


@pytest.fixture
def lake(written: Path, tmp_path: Path) -> Lake:
    return Lake(str(shutil.copytree(written, tmp_path / "lake")))


def restore(lake: Lake, contract: Contract, version: int) -> None:
    """The table as it was, as a new version."""
    DeltaTable(lake.location(contract)).restore(version)


def copy_back(lake: Lake, backup: Path, lost: Path) -> None:
    shutil.copy2(backup / lost.relative_to(lake.uri), lost)


@pytest.mark.parametrize("contract", [SAMPLES, RESULTS, METRIC_SNAPSHOTS])
def test_a_deleted_data_file_is_copied_back(lake: Lake, backup: Path, contract: Contract) -> None:
    gone = data_file(lake, contract)
    gone.unlink()
    assert "restore the files from a backup" in found(lake, *CHECKED)[contract.table][0].mend
    copy_back(lake, backup, gone)
    assert found(lake, *CHECKED) == {}


@pytest.mark.parametrize("content", [b"", b"{"])
def test_a_cut_log_entry_is_copied_back(lake: Lake, backup: Path, content: bytes) -> None:
    cut = entry(lake, SAMPLES, 1)
    cut.write_bytes(content)
    assert "backup" in found(lake, SAMPLES)[SAMPLES.table][0].mend
    copy_back(lake, backup, cut)
    assert found(lake, *CHECKED) == {}


def test_a_cut_newest_entry_is_deleted_and_what_it_held_imported_again(lake: Lake, tmp_path: Path) -> None:
    rows = lake.frame(SAMPLES).collect().height
    cut = entry(lake, SAMPLES, newest(lake, SAMPLES))
    cut.write_bytes(cut.read_bytes()[:-30])
    assert "delete this newest entry" in found(lake, SAMPLES)[SAMPLES.table][0].mend
    cut.unlink()
    assert lake.frame(SAMPLES).collect().height == 0
    (tmp_path / "results.jsonl").write_text("\n".join(recorded(n) for n in range(8)))
    import_recorded(lake, suite("command_guard"), [tmp_path / "results.jsonl"])
    assert lake.frame(SAMPLES).collect().height == rows
    assert found(lake, *CHECKED) == {}


def test_a_duplicate_key_and_a_row_that_breaks_a_rule_go_with_an_earlier_version(lake: Lake) -> None:
    good = newest(lake, SAMPLES)
    row = lake.frame(SAMPLES).head(1).collect()
    around(lake, SAMPLES, row)
    assert "key_unique" in the_finding(lake, SAMPLES).problem
    around(lake, SAMPLES, row.with_columns(sample_id=pl.lit("x"), sample_hash=pl.lit("no hash")))
    assert all("restore an earlier version" in finding.mend for finding in found(lake, SAMPLES)[SAMPLES.table])
    restore(lake, SAMPLES, good)
    assert found(lake, *CHECKED) == {}


def test_a_bad_row_can_be_deleted_alone(lake: Lake) -> None:
    """As docs/backup.md shows it."""
    row = lake.frame(SAMPLES).head(1).collect()
    around(lake, SAMPLES, row.with_columns(sample_id=pl.lit("x"), sample_hash=pl.lit("no hash")))
    assert "delete these rows" in the_finding(lake, SAMPLES).mend
    DeltaTable(lake.location(SAMPLES)).delete("sample_id = 'x' AND sample_hash = 'no hash'")
    assert found(lake, *CHECKED) == {}


def test_a_changed_metric_goes_with_an_earlier_version(lake: Lake) -> None:
    good = newest(lake, METRIC_SNAPSHOTS)
    DeltaTable(lake.location(METRIC_SNAPSHOTS)).update(updates={"value": "0.123"}, predicate="metric = 'accuracy'")
    finding = the_finding(lake, METRIC_SNAPSHOTS)
    assert "differs from its recomputation" in finding.problem
    assert "restore an earlier version" in finding.mend
    restore(lake, METRIC_SNAPSHOTS, good)
    assert found(lake, *CHECKED) == {}


def test_missing_constraints_come_back_with_maintenance(lake: Lake) -> None:
    lake.open(SAMPLES).alter.drop_constraint("position_not_negative")
    assert "evalake maintain" in the_finding(lake, SAMPLES).mend
    maintain(lake, [SAMPLES])
    assert found(lake, *CHECKED) == {}
