"""Maintenance: files are joined and removed, while no row, no reply and no version that a snapshot pins is lost."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
from deltalake import Field
from deltalake.schema import PrimitiveType

from evalake.contracts.contract import Contract
from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import CALLS, SNAPSHOTS
from evalake.core.errors import LakeError
from evalake.storage import ledger
from evalake.storage.lake import Lake, constraints
from evalake.storage.landing import land
from evalake.storage.ledger import LedgerIndex
from evalake.storage.maintenance import maintain
from tests.integration.storage.rows import TOYS, call, key_of, toy

TABLES = (SNAPSHOTS, TOYS, CALLS)


def land_toys(lake: Lake, *keys: str, state: str = "final") -> None:
    land(lake, TOYS, pl.DataFrame([toy(key, state=state) for key in keys]))


def pin(lake: Lake, **versions: int | None) -> None:
    """A snapshot that was computed from these versions of tables."""
    row = {
        "snapshot_id": f"{len(lake.frame(SNAPSHOTS).collect()):064x}",
        "run_id": "run",
        "suite": "toys",
        "pinned_versions": json.dumps(versions),
        "definition_hash": "0" * 64,
        "scorer_version": "1",
        "code_version": "1",
        "seed": 0,
        "options": "{}",
        "warnings": [],
        "created_at": datetime(2026, 1, 1, tzinfo=UTC),
    }
    land(lake, SNAPSHOTS, conform([row], SNAPSHOTS))


def data_files(lake: Lake, contract: Contract) -> set[str]:
    folder = Path(lake.location(contract))
    return {str(file.relative_to(folder)) for file in folder.rglob("*.parquet") if "_delta_log" not in file.parts}


def test_small_files_become_one_and_every_row_stays(lake: Lake) -> None:
    for n in range(6):
        land_toys(lake, f"k{n}")
    (done,) = maintain(lake, [TOYS])
    assert (done.files_before, done.files_after) == (6, 1)
    assert sorted(lake.frame(TOYS).collect()["key"]) == [f"k{n}" for n in range(6)]
    assert list(Path(lake.location(TOYS)).glob("_delta_log/*.checkpoint*.parquet"))


def test_a_dry_run_says_what_would_be_removed_and_changes_nothing(lake: Lake) -> None:
    land_toys(lake, "a")
    land_toys(lake, "b")
    maintain(lake, [TOYS])
    version, files = lake.version(TOYS), data_files(lake, TOYS)
    (said,) = maintain(lake, [TOYS], dry_run=True, retention_hours=0)
    assert said.files_removed == 2
    assert (lake.version(TOYS), data_files(lake, TOYS)) == (version, files)


def test_files_that_may_still_be_read_are_not_removed(lake: Lake) -> None:
    land_toys(lake, "a")
    land_toys(lake, "b")
    (done,) = maintain(lake, [TOYS])
    assert done.files_removed == 0


def test_a_version_that_a_snapshot_pins_outlives_vacuum_and_others_do_not(lake: Lake) -> None:
    land_toys(lake, "a", "b", state="early")
    unpinned = lake.version(TOYS)
    land_toys(lake, "a", state="final")  # rewrites the file
    land_toys(lake, "c", state="early")
    pinned = lake.version(TOYS)
    before = lake.frame(TOYS, pinned).collect().sort("key")
    pin(lake, toys=pinned, samples=None)
    land_toys(lake, "b", "c", state="final")
    maintain(lake, TABLES)  # compacts
    land_toys(lake, "d")
    assert unpinned is not None
    versions = [lake.find(TOYS.table, version) for version in (unpinned, pinned)]
    old_files = set.difference(*(set(table.file_uris()) for table in versions if table is not None))
    assert all(Path(file).exists() for file in old_files)

    maintain(lake, TABLES, retention_hours=0)
    assert lake.frame(TOYS, pinned).collect().sort("key").equals(before)
    assert old_files
    assert not any(Path(file).exists() for file in old_files)
    assert sorted(lake.frame(TOYS).collect()["key"]) == ["a", "b", "c", "d"]

    maintain(lake, TABLES, retention_hours=0)  # and again, from a checkpoint on
    assert lake.frame(TOYS, pinned).collect().sort("key").equals(before)


def test_what_a_dead_writer_left_behind_is_removed(lake: Lake) -> None:
    land_toys(lake, "a")
    left = Path(lake.location(TOYS)) / "model=m" / "part-00000-left-behind.snappy.parquet"
    left.write_bytes(b"half a file")
    maintain(lake, [TOYS])
    assert left.exists()  # it may belong to a writer that is about to commit
    maintain(lake, [TOYS], retention_hours=0)
    assert not left.exists()


def test_replies_that_lost_a_race_are_dropped_in_one_commit(lake: Lake) -> None:
    ledger.append(lake, [call(n, response="first") for n in range(20)])
    ledger.append(lake, [call(n, response="second") for n in range(5, 25)])
    version = ledger.append(lake, [call(0, response="third")])
    (said,) = maintain(lake, [CALLS], dry_run=True)
    assert (said.superseded_rows, said.files_after) == (16, None)  # what a compaction leaves is not known beforehand
    assert lake.frame(CALLS).collect().height == 41
    (done,) = maintain(lake, [CALLS])
    assert done.superseded_rows == 16
    kept = lake.frame(CALLS).collect()
    assert kept.height == 25
    assert kept.filter(pl.col("response") == "second").height == 5
    assert lake.open(CALLS).version() <= version + 4  # the deletion, the compaction's two, and that no key is twice
    assert ledger.append(lake, [call(99)]) == kept_version(lake)


def kept_version(lake: Lake) -> int:
    return int(lake.frame(CALLS).select(pl.col("ledger_version").max()).collect().item())


def test_constraints_that_went_missing_are_added_again(lake: Lake) -> None:
    land_toys(lake, "a")
    lake.open(TOYS).alter.drop_constraint("size_not_negative")
    maintain(lake, [TOYS])
    assert "size_not_negative" in constraints(lake.open(TOYS))


def test_one_damaged_table_does_not_keep_the_others_from_maintenance(lake: Lake) -> None:
    for n in range(3):
        land_toys(lake, f"k{n}")
        ledger.append(lake, [call(n)])
    (Path(lake.location(TOYS)) / "_delta_log" / f"{3:020}.json").unlink()
    with pytest.raises(LakeError, match="toys"):
        maintain(lake, TABLES)
    assert len(lake.open(CALLS).file_uris()) == 1


def test_maintenance_beside_writers_loses_and_doubles_nothing(lake: Lake) -> None:
    """Four threads merge and append while maintenance runs over and over."""
    lake.ensure(TOYS)
    lake.ensure(CALLS)
    written = threading.Event()

    def merge(first: int) -> None:
        for n in range(first, first + 12):
            land_toys(lake, f"k{n}", f"k{n + 6}", state="early")
            land_toys(lake, f"k{n}", state="final")

    def append(first: int) -> None:
        for n in range(first, first + 12):
            ledger.append(lake, [call(n)])

    def look_after() -> int:
        times = 0
        while not written.is_set() or not times:
            maintain(lake, TABLES)
            times += 1
        return times

    with ThreadPoolExecutor(5) as pool:
        maintenance = pool.submit(look_after)
        writers = [pool.submit(write, first) for write, first in ((merge, 0), (merge, 6), (append, 0), (append, 8))]
        try:
            for writer in writers:
                writer.result()
        finally:
            written.set()
        assert maintenance.result() >= 1
    toys = lake.frame(TOYS).collect()
    assert sorted(toys["key"]) == sorted(f"k{n}" for n in range(24))
    assert set(toys.filter(pl.col("key").is_in([f"k{n}" for n in range(18)]))["state"]) == {"final"}
    keys = [key_of(call(n)) for n in range(20)]
    assert set(LedgerIndex.read(lake).fetch(keys)) == set(keys)
    assert ledger.replies(lake.frame(CALLS)).collect().height == 20


def test_a_table_of_another_schema_does_not_keep_the_others_from_maintenance(lake: Lake) -> None:
    ledger.append(lake, [call(1)])
    ledger.append(lake, [call(2)])
    land_toys(lake, "a")
    lake.open(TOYS).alter.add_columns([Field("extra", PrimitiveType("string"))])
    with pytest.raises(LakeError, match=r"1 tables failed.*toys.*extra"):
        maintain(lake, [TOYS, CALLS])
    assert len(lake.open(CALLS).file_uris()) == 1
