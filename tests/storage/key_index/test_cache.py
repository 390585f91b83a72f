"""What is kept of a ledger's keys is the user's alone, and whatever is wrong with it costs a scan and nothing else."""

import fcntl
import json
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from contracts.tables import CALLS
from core.private_folders import CACHE
from storage import ledger
from storage.forget import erase
from storage.key_index import cache as cache_module
from storage.key_index.cache import LIST, Cache, folder_of
from storage.lake import Lake
from storage.ledger import LedgerIndex
from tests.storage.rows import call, key_of


def fill(lake: Lake, rows: int) -> None:
    ledger.append(lake, [call(number) for number in range(rows)])


def assert_finds(lake: Lake, rows: int) -> None:
    """Whether exactly these rows are found."""
    found = LedgerIndex.read(lake).fetch([key_of(call(number)) for number in range(rows + 5)])
    assert found.keys() == {key_of(call(number)) for number in range(rows)}


def kept(lake: Lake) -> list[Path]:
    return sorted(folder_of(lake.uri).glob("*.keys"))


def test_a_small_ledger_leaves_nothing(lake: Lake, cache: Path) -> None:
    fill(lake, 2)
    assert_finds(lake, 2)
    assert not cache.exists()


def test_what_is_kept_is_the_users_alone_and_lies_outside_the_lake(lake: Lake, cache: Path) -> None:
    fill(lake, 20)
    assert_finds(lake, 20)
    places = [cache, folder_of(lake.uri), *folder_of(lake.uri).iterdir()]
    assert len(kept(lake)) == 1
    assert {stat.S_IMODE(place.stat().st_mode) for place in places} == {0o600, 0o700}
    assert not any(path.name == LIST or path.suffix == ".keys" for path in Path(lake.uri).rglob("*"))


def test_keys_that_are_kept_are_not_read_from_the_ledger(lake: Lake) -> None:
    fill(lake, 20)
    assert_finds(lake, 20)
    (file,) = lake.open(CALLS).file_uris()
    Path(file).write_bytes(b"torn")
    assert LedgerIndex.read(lake).known([key_of(call(3))])
    assert not LedgerIndex.read(lake).known([key_of(call(20))])


def _tear(folder: Path) -> None:
    for file in folder.glob("*.keys"):
        file.write_bytes(file.read_bytes()[:-1])


def _empty(folder: Path) -> None:
    for file in folder.glob("*.keys"):
        file.write_bytes(b"\0" * file.stat().st_size)


def _lose(folder: Path) -> None:
    for file in folder.glob("*.keys"):
        file.unlink()


def _garble(folder: Path) -> None:
    (folder / LIST).write_text("{")


def _of_another_format(folder: Path) -> None:
    listed = json.loads((folder / LIST).read_text())
    (folder / LIST).write_text(json.dumps(listed | {"format": 0}))


def _of_another_shape(folder: Path) -> None:
    listed = json.loads((folder / LIST).read_text())
    (folder / LIST).write_text(json.dumps(listed | {"segments": [1]}))


@pytest.mark.parametrize("break_it", [_tear, _empty, _lose, _garble, _of_another_format, _of_another_shape])
def test_what_is_broken_is_made_anew(lake: Lake, break_it: Callable[[Path], None]) -> None:
    fill(lake, 20)
    assert_finds(lake, 20)
    (before,) = kept(lake)
    break_it(folder_of(lake.uri))
    assert_finds(lake, 20)
    (after,) = kept(lake)
    assert after != before
    assert_finds(lake, 20)
    assert kept(lake) == [after]


def test_another_lake_at_the_same_place_is_another(lake: Lake) -> None:
    fill(lake, 20)
    assert_finds(lake, 20)
    Path(lake.uri).rename(Path(lake.uri).with_name("old"))
    fill(lake, 10)
    assert_finds(lake, 10)
    assert len(kept(lake)) == 1


def test_a_lake_is_found_again_by_its_whole_address(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(lake.uri).parent)
    assert folder_of("lake") == folder_of(lake.uri) != folder_of("s3://bucket/lake")


def test_what_is_kept_of_a_lake_that_was_deleted_goes(lake: Lake, tmp_path: Path) -> None:
    fill(lake, 20)
    assert_finds(lake, 20)
    assert kept(lake)
    shutil.rmtree(lake.uri)
    other = Lake(str(tmp_path / "other"))
    fill(other, 20)
    assert_finds(other, 20)
    assert kept(other)
    assert not kept(lake)


def test_nothing_is_kept_while_another_process_is_about_it(lake: Lake) -> None:
    fill(lake, 20)
    (folder := folder_of(lake.uri)).mkdir(parents=True, mode=0o700)
    with (folder / "lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert_finds(lake, 20)
        assert not kept(lake)
    assert_finds(lake, 20)
    assert len(kept(lake)) == 1


def test_a_disk_that_is_full_costs_a_scan(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, os.strerror(28))

    fill(lake, 20)
    monkeypatch.setattr(cache_module.os, "fsync", full)
    assert_finds(lake, 20)
    assert not kept(lake)


def test_a_place_where_nothing_can_be_made_costs_a_scan(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(lake, 20)
    monkeypatch.setenv(CACHE, "/proc/nowhere")
    assert_finds(lake, 20)


def test_what_another_user_has_put_there_is_not_believed(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(lake, 20)
    assert_finds(lake, 20)
    theirs, status = folder_of(lake.uri), Path.lstat

    def lstat(path: Path) -> os.stat_result:
        seen = status(path)
        return os.stat_result((*seen[:4], seen.st_uid + 1, *seen[5:])) if path == theirs else seen

    (before,) = kept(lake)
    monkeypatch.setattr(Path, "lstat", lstat)
    assert Cache.of(lake.uri, "") is None
    fill(lake, 25)
    assert_finds(lake, 25)
    monkeypatch.undo()
    assert before.exists()


def test_forgetting_calls_leaves_nothing_of_their_hashes(lake: Lake) -> None:
    fill(lake, 20)
    assert_finds(lake, 20)
    erase(lake, CALLS.table, "prompt_hash", [call(3)["prompt_hash"]])
    assert [file.name for file in folder_of(lake.uri).iterdir()] == ["lock"]
    assert not LedgerIndex.read(lake).known([key_of(call(3))])
    assert LedgerIndex.read(lake).known([key_of(call(4))])
