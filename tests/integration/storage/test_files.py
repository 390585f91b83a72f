"""Files of a lake: ages, removal, refusals, proofs, the inventory and its secret."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evalake.contracts.tables import CALLS, RUNS
from evalake.core.errors import LakeError
from evalake.storage.backup import back_up
from evalake.storage.cached_table import CachedTable, OpenTable, inventory
from evalake.storage.forget import refused_rows
from evalake.storage.integrity import find_tampering, inspect
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.storage.ledger import join_files
from evalake.storage.maintenance import lake_time, remove, require_no_links, table_time
from evalake.storage.secret import BYTES, FOLDER, ensure_secret, read_secret
from evalake.storage.snapshots import Snapshot
from evalake.suites.registry import all_contracts, suite
from evalake.tasks.publish import Refused, quarantine
from tests.integration.storage.rows import TOYS, toy
from tests.integration.storage.test_landing import frame

# What time it is for a lake; tests/attacks/test_clocks.py has clocks that are ahead.


@pytest.mark.parametrize("folder", ["lake", "l#ke"])  # the engine finds no history in the second
def test_the_newest_commit_tells_the_time(tmp_path: Path, folder: str) -> None:
    lake = Lake(str(tmp_path / folder))
    table = lake.ensure(TOYS)
    before = datetime.now(UTC) - timedelta(minutes=1)
    assert before < table_time(lake, table, TOYS.table) == lake_time(lake, [TOYS]) <= datetime.now(UTC)
    entry = max(Path(lake.location(TOYS)).glob("_delta_log/*.json"))
    for then, told in ((1_600_000_000, 1_600_000_000), (4_000_000_000, None)):
        os.utime(entry, (then, then))
        assert told is None or table_time(lake, table, TOYS.table) == datetime.fromtimestamp(told, UTC)
    assert table_time(lake, table, TOYS.table) <= datetime.now(UTC)


# Files of tables are removed, wherever the lake is; tests/attacks/test_links.py has the links.


@pytest.mark.parametrize("form", [str, Path.as_uri])
def test_names_with_any_character_are_removed(tmp_path: Path, form: object) -> None:
    names = ["model=a%2Fb%20c/part 1.parquet", "ü#?.parquet"]
    for name in names:
        (tmp_path / "my lake" / "toys" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "my lake" / "toys" / name).touch()
    lake = Lake(form(tmp_path / "my lake"))  # type: ignore[operator]
    require_no_links(lake, "toys")
    remove(lake, "toys", names)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    (tmp_path / "my lake" / "toys" / "link").symlink_to("/")
    with pytest.raises(LakeError, match="toys/link is a link to '/'"):
        require_no_links(lake, "toys")


def test_a_folder_named_like_an_object_store_is_not_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (link := tmp_path / "s3:" / "bucket" / "lake" / "toys" / "link").parent.mkdir(parents=True)
    link.symlink_to("/")
    require_no_links(Lake("s3://bucket/lake"), "toys")
    with pytest.raises(LakeError, match="is a link"):
        require_no_links(Lake("s3:/bucket/lake"), "toys")


# Rows in quarantine are read back as rows; lines that never were any are left out.


def test_only_rows_of_the_run_and_its_tables_are_read_back(tmp_path: Path) -> None:
    lake, contract = Lake(str(tmp_path / "lake")), suite("solidity_audit").results
    row = {"sample_hash": "a" * 64, "judge": "j"}
    assert list(refused_rows(lake, "run", [contract])) == []
    payloads = [json.dumps(row), "no JSON", "[1]", "null", json.dumps({"suite": "solidity_audit"})]
    quarantine(lake, "run", "batch", [Refused(contract.table, payload, ("rule",), "why") for payload in payloads])
    quarantine(lake, "run", "other", [Refused("samples", json.dumps(row), ("rule",), "why")])
    quarantine(lake, "another", "third", [Refused(contract.table, json.dumps(row), ("rule",), "why")])
    assert list(refused_rows(lake, "run", [contract])) == [row]


# A table that is watched: read on when it moves, and again where reading it failed.


def test_rows_that_could_not_be_read_are_read_the_next_time(lake: Lake) -> None:
    watched = CachedTable(lake, TOYS)
    assert watched.rows().is_empty()
    land(lake, TOYS, pl.DataFrame([toy("a")]))
    assert watched.rows()["key"].to_list() == ["a"]
    assert watched.rows() is watched.rows()
    land(lake, TOYS, pl.DataFrame([toy("b")]))
    files = [Path(uri) for uri in lake.open(TOYS).file_uris()]
    for file in files:
        file.rename(file.with_suffix(".away"))
    with pytest.raises(Exception, match=r"No such file|not found"):
        watched.rows()
    for file in files:
        file.with_suffix(".away").rename(file)
    assert sorted(watched.rows()["key"]) == ["a", "b"]


def test_only_files_that_are_new_are_read(lake: Lake) -> None:
    watched = CachedTable(lake, TOYS)
    land(lake, TOYS, pl.DataFrame([toy("a"), toy("b", model="provider/m 1")]))
    watched.rows()
    for uri in lake.open(TOYS).file_uris():
        Path(uri).unlink()  # who reads these again fails
    land(lake, TOYS, pl.DataFrame([toy("c", model="third")]))
    assert sorted(watched.rows().select("key", "model").rows()) == [("a", "m"), ("b", "provider/m 1"), ("c", "third")]


def test_rows_that_were_replaced_or_joined_are_there_once(lake: Lake) -> None:
    watched = CachedTable(lake, TOYS)
    for key in ("a", "b", "c"):
        land(lake, TOYS, pl.DataFrame([toy(key, state="early")]))
        watched.rows()
    land(lake, TOYS, pl.DataFrame([toy("b", state="final")]))
    states = [("a", "early"), ("b", "final"), ("c", "early")]
    assert sorted(watched.rows().select("key", "state").rows()) == states
    join_files(lake.open(TOYS))
    assert sorted(watched.rows().select("key", "state").rows()) == states
    assert watched.rows().columns == lake.frame(TOYS).collect().columns


def test_an_open_table_is_as_new_as_the_lake_through_all_its_versions(lake: Lake) -> None:
    opened = OpenTable(lake, TOYS)
    with pytest.raises(LakeError, match="is gone"):
        opened.newest()
    for number in range(70):  # it is opened again now and then
        land(lake, TOYS, pl.DataFrame([toy(f"key {number}")]))
        assert sorted(opened.newest().file_uris()) == sorted(lake.open(TOYS).file_uris())


# The inventory: which tables a lake has, how large they are, the one that changed last first.


def test_tables_that_are_there_come_with_their_size_and_the_newest_first(lake: Lake) -> None:
    lake.ensure(CALLS)
    land(lake, TOYS, frame(toy("a"), toy("b")))
    land(lake, TOYS, frame(toy("c", model="n")))
    toys, calls = inventory(lake, [CALLS, RUNS, TOYS]).to_dicts()
    assert (toys["table"], toys["rows"], toys["files"], toys["description"]) == ("toys", 3, 2, "A table for tests.")
    assert toys["version"] == lake.open(TOYS).version()
    assert toys["bytes"] > 0
    assert (calls["table"], calls["rows"], calls["files"], calls["bytes"]) == ("calls", 0, 0, 0)
    assert datetime.now(UTC) - toys["changed_at"] < timedelta(hours=1)


# The integrity of stored tables: what a writer does beside, and what was never there.


def test_a_writer_that_appends_meanwhile_disturbs_nothing(lake: Lake) -> None:
    for n in range(20):
        land(lake, TOYS, pl.DataFrame([toy(f"k{n}", model="openai/gpt é:%")]))
        assert inspect(lake, TOYS).damage == list(find_tampering(lake, TOYS)) == []


# The secret of a lake: made once, whoever asks at the same moment, kept by backups, and never silently another.

MAKE = "import sys; from evalake.storage.lake import Lake; from evalake.storage.secret import ensure_secret; "
MAKE += "sys.stdin.readline(); print(ensure_secret(Lake(sys.argv[1])).hex())"


def test_processes_that_need_it_at_the_same_moment_get_the_same(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "my lake"))
    words = [sys.executable, "-c", MAKE, lake.uri]
    makers = [subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    said = {maker.communicate("\n")[0].strip() for maker in makers}
    assert said == {ensure_secret(lake).hex()}
    assert len(ensure_secret(lake)) == BYTES


def test_who_only_reads_makes_none(tmp_path: Path) -> None:
    assert read_secret(Lake(str(tmp_path / "lake"))) is None
    assert not (tmp_path / "lake").exists()


def test_each_lake_has_its_own_and_a_backup_keeps_it(tmp_path: Path) -> None:
    lake, other, copy = (Lake(str(tmp_path / name)) for name in ("lake", "other", "copy"))
    assert ensure_secret(lake) != ensure_secret(other)
    back_up(lake, copy, all_contracts())
    assert read_secret(copy) == read_secret(lake)
    back_up(lake, copy, all_contracts())
    with pytest.raises(LakeError, match=FOLDER):
        back_up(other, copy, all_contracts())


def test_a_damaged_one_is_named_and_not_replaced(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    secret = ensure_secret(lake)
    (entry,) = (tmp_path / "lake" / FOLDER / "_delta_log").iterdir()
    entry.write_text(entry.read_text().replace(secret.hex(), secret.hex()[:-2]))
    with pytest.raises(LakeError, match=r"the secret of the lake .* is damaged: restore the folder _secret"):
        ensure_secret(lake)
    shutil.rmtree(tmp_path / "lake" / FOLDER)
    assert ensure_secret(lake) != secret


# The identity of a snapshot: everything that decides its values is in it, and nothing else.

SNAPSHOT = Snapshot(
    run_id="r1",
    suite="toys",
    pinned_versions={"calls": 3, "toys": None},
    definition_hash="d" * 64,
    scorer_version="1",
    seed=7,
    options={"target": 0.85},
    code_version="1.0",
)


@pytest.mark.parametrize(
    "change",
    [
        {"run_id": "r2"},
        {"suite": "others"},
        {"pinned_versions": {"calls": 4, "toys": None}},
        {"pinned_versions": {"calls": 3, "toys": 0}},
        {"definition_hash": "e" * 64},
        {"scorer_version": "2"},
        {"seed": 8},
        {"options": {"target": 0.9}},
    ],
    ids=lambda change: "-".join(change),
)
def test_whatever_decides_the_values_changes_the_id(change: dict[str, Any]) -> None:
    assert replace(SNAPSHOT, **change).id != SNAPSHOT.id


def test_warnings_the_code_version_and_the_order_of_names_do_not() -> None:
    other = replace(SNAPSHOT, code_version="2.0", warnings=("look",), pinned_versions={"toys": None, "calls": 3})
    assert other.id == SNAPSHOT.id
