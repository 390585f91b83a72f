"""A clock that is ahead: nothing is old before the lake's own time says so, so no fresh reply is deleted."""

import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from evalake.admin.maintain import maintain as maintain_lake
from evalake.contracts.tables import CALLS
from evalake.core.configuration import Retention
from evalake.reports.page import DATA, PAGE
from evalake.storage import ledger
from evalake.storage.lake import Lake
from evalake.storage.maintenance import maintain
from tests.integration.storage.rows import call

AHEAD = timedelta(days=30)


def put_back(lake: Lake, by: timedelta = AHEAD) -> None:
    """Make the lake as it is for a machine whose clock is ahead by that: all times in it, and of its files."""
    milliseconds = round(by.total_seconds() * 1000)
    for file in Path(lake.uri).rglob("*"):
        if file.parent.name == "_delta_log" and file.suffix == ".json":
            text = file.read_text()
            stamps = r'("(?:timestamp|deletionTimestamp|modificationTime)":)(\d{13})\b'
            file.write_text(re.sub(stamps, lambda match: f"{match[1]}{int(match[2]) - milliseconds}", text))
        if file.is_file():
            age(file, by)


def age(file: Path, by: timedelta) -> None:
    then = (datetime.now(UTC) - by).timestamp()
    os.utime(file, (then, then))


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A ledger whose files were joined a moment ago, and a file whose writer is about to commit it."""
    lake = Lake(str(tmp_path / "lake"))
    for n in range(4):
        ledger.append(lake, [call(n)])
    maintain(lake, [CALLS])
    for checkpoint in Path(lake.location(CALLS)).glob("_delta_log/*checkpoint*"):
        checkpoint.unlink()
    (Path(lake.location(CALLS)) / "part-00000-fresh.snappy.parquet").write_bytes(b"fresh replies")
    return lake


def data(lake: Lake) -> set[str]:
    return {file.name for file in Path(lake.location(CALLS)).glob("*.parquet")}


def test_fresh_files_and_those_of_readers_under_way_stay(lake: Lake) -> None:
    put_back(lake)
    before = data(lake)
    (planned,) = maintain(lake, [CALLS], dry_run=True)
    (done,) = maintain(lake, [CALLS])
    assert planned.removed == done.removed == ()
    assert data(lake) == before
    assert len(before) == 6


def test_one_writer_whose_clock_is_ahead_makes_nothing_old(lake: Lake) -> None:
    """The time that the store gives the newest commit is the earlier one then."""
    put_back(lake)
    ledger.append(lake, [call(9)])
    newest = max(Path(lake.location(CALLS)).glob("_delta_log/*.json"))
    age(newest, AHEAD)
    before = data(lake)
    (done,) = maintain(lake, [CALLS], dry_run=True)
    assert done.removed == ()
    assert data(lake) == before


def test_what_is_old_by_the_lakes_own_time_goes(lake: Lake) -> None:
    put_back(lake)
    left = Path(lake.location(CALLS)) / "part-00000-fresh.snappy.parquet"
    age(left, AHEAD + timedelta(days=10))
    (done,) = maintain(lake, [CALLS])
    assert done.removed == (left.name,)
    assert not left.exists()


def test_the_log_stays_whatever_the_clock_says(lake: Lake) -> None:
    table = lake.open(CALLS)
    table.alter.set_table_properties({"delta.checkpointInterval": "2"})
    put_back(lake, timedelta(days=11 * 365))
    for n in range(10, 16):
        ledger.append(lake, [call(n)])
    maintain(lake, [CALLS])
    entries = sorted(Path(lake.location(CALLS)).glob("_delta_log/*.json"))
    assert [int(entry.stem) for entry in entries] == list(range(lake.open(CALLS).version() + 1))
    assert lake.frame(CALLS).select(pl.len()).collect().item() == 10


def test_a_table_of_an_earlier_version_keeps_its_log_from_then_on(lake: Lake) -> None:
    lake.open(CALLS).alter.set_table_properties({"delta.enableExpiredLogCleanup": "true"})
    maintain(lake, [CALLS])
    assert lake.open(CALLS).metadata().configuration["delta.enableExpiredLogCleanup"] == "false"


def test_reports_are_as_old_as_the_lake_says(lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALAKE_REPORTS", str(tmp_path / "reports"))
    for name, days in (("young", 1), ("old", 10)):
        (tmp_path / "reports" / name).mkdir(parents=True)
        for file in (PAGE, DATA):
            (tmp_path / "reports" / name / file).touch()
            age(tmp_path / "reports" / name / file, AHEAD + timedelta(days=days))
    put_back(lake)
    (expired,) = maintain_lake(lake, Retention(reports_days=7)).expired
    assert expired.files == (f"old/{PAGE}", f"old/{DATA}")
    assert [each.name for each in (tmp_path / "reports").iterdir()] == ["young"]
