"""Links that somebody put below a lake: nothing outside is deleted, copied or overwritten, and the link is named."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from evalake.admin.forget import places
from evalake.admin.maintain import remove_expired
from evalake.contracts.tables import SAMPLES
from evalake.core.configuration import Retention
from evalake.core.errors import LakeError
from evalake.reports.page import DATA, PAGE
from evalake.storage.backup import back_up
from evalake.storage.lake import Lake
from evalake.storage.maintenance import remove
from tests.integration.cli.command import evalake_here, recorded

OLD = 1_600_000_000
TABLE = "samples"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with a few commits to each table."""
    folder = tmp_path_factory.mktemp("made")
    for number in range(2):
        file = folder / f"{number}.jsonl"
        file.write_text("\n".join(recorded(4 * number + sample) for sample in range(4)))
        done = evalake_here("import", file, "--suite", "command_guard", "--lake", folder / "lake", folder=folder)
        assert done.returncode == 0, done.stderr
    return folder / "lake"


@pytest.fixture
def lake(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "lake"))


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """Files of the user that no lake knows, all of them old."""
    (folder := tmp_path / "outside").mkdir()
    for name in ("keep.txt", "keep.parquet", "part-00000-keep.snappy.parquet"):
        (folder / name).write_text("precious")
        os.utime(folder / name, (OLD, OLD))
    return folder


def to_a_folder(table: Path, outside: Path) -> None:
    (table / "evil").symlink_to(outside)


def to_a_file(table: Path, outside: Path) -> None:
    (table / "part-00001-evil.snappy.parquet").symlink_to(outside / "keep.txt")


def to_a_parent(table: Path, outside: Path) -> None:
    (table / "evil").symlink_to("../..")


def to_itself(table: Path, outside: Path) -> None:
    (table / "evil").symlink_to("evil")


def to_nothing(table: Path, outside: Path) -> None:
    (table / "deep").mkdir()
    (table / "deep" / "evil").symlink_to(outside / "absent")


def as_the_log(table: Path, outside: Path) -> None:
    (table / "_delta_log").rename(outside / "log")
    (table / "_delta_log").symlink_to(outside / "log")


def as_the_table(table: Path, outside: Path) -> None:
    table.rename(outside / "table")
    table.symlink_to(outside / "table")


LINKS = (to_a_folder, to_a_file, to_a_parent, to_itself, to_nothing, as_the_log, as_the_table)
Plant = Callable[[Path, Path], None]


def everything(*folders: Path) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes()
        for folder in folders
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


@pytest.mark.parametrize("command", [("maintain",), ("maintain", "--dry-run")])
@pytest.mark.parametrize("plant", LINKS)
def test_maintenance_deletes_nothing_behind_a_link(
    lake: Path, outside: Path, plant: Plant, command: tuple[str, ...]
) -> None:
    plant(lake / TABLE, outside)
    before = everything(outside, lake / TABLE)
    done = evalake_here(*command, "--lake", lake, folder=lake.parent)
    assert done.returncode == 1
    assert "is a link to" in done.stderr
    assert TABLE in done.stderr
    assert everything(outside, lake / TABLE) == before


@pytest.mark.parametrize("plant", LINKS)
def test_forgetting_deletes_nothing_at_all_then(lake: Path, outside: Path, plant: Plant) -> None:
    plant(lake / TABLE, outside)
    before = everything(outside, lake)
    done = evalake_here("forget", "--dataset", "mine", "--lake", lake, folder=lake.parent)
    assert done.returncode == 1
    assert "is a link to" in done.stderr
    assert everything(outside, lake) == before


def test_an_address_of_a_folder_is_a_folder_too(lake: Path, outside: Path) -> None:
    to_a_folder(lake / TABLE, outside)
    done = evalake_here("maintain", "--lake", lake.as_uri(), folder=lake.parent)
    assert "is a link to" in done.stderr
    assert len(everything(outside)) == 3


def test_a_backup_neither_reads_nor_writes_through_a_link(lake: Path, outside: Path) -> None:
    (copy := lake.parent / "copy").mkdir()
    (copy / TABLE).symlink_to(outside)
    with pytest.raises(LakeError, match="is a link to"):
        back_up(Lake(str(lake)), Lake(str(copy)), [SAMPLES])
    assert len(everything(outside)) == 3
    (copy / TABLE).unlink()
    to_a_file(lake / TABLE, outside)
    with pytest.raises(LakeError, match="is a link to"):
        back_up(Lake(str(lake)), Lake(str(copy)), [SAMPLES])
    assert everything(copy) == {}


def test_a_lake_that_is_a_link_itself_is_the_users_choice(lake: Path, tmp_path: Path) -> None:
    (chosen := tmp_path / "chosen").symlink_to(lake)
    done = evalake_here("maintain", "--lake", chosen, folder=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["../outside/keep.txt", "/etc/hostname", "a/../../x", "..", "", "evil/keep.txt"])
def test_no_name_leads_out_of_a_table(lake: Path, outside: Path, name: str) -> None:
    to_a_folder(lake / TABLE, outside)  # as if it had been put there after the look
    with pytest.raises(LakeError):
        remove(Lake(str(lake)), TABLE, [name])
    assert len(everything(outside)) == 3


def test_a_dry_run_lists_what_would_be_deleted(lake: Path) -> None:
    left = lake / TABLE / "part-00009-left-by-a-dead-writer.snappy.parquet"
    left.write_bytes(b"half a file")
    os.utime(left, (OLD, OLD))
    done = evalake_here("maintain", "--dry-run", "--lake", lake, folder=lake.parent)
    assert f"would be deleted: {TABLE}/{left.name}" in done.stdout
    told = json.loads(evalake_here("maintain", "--dry-run", "--json", "--lake", lake, folder=lake.parent).stdout)
    assert {each["table"]: each["removed"] for each in told["tables"]}[TABLE] == [left.name]
    assert left.exists()
    evalake_here("maintain", "--lake", lake, folder=lake.parent)
    assert not left.exists()


def test_forgetting_deletes_what_its_dry_run_lists(lake: Path) -> None:
    done = evalake_here("forget", "--dataset", "mine", "--dry-run", "--lake", lake, folder=lake.parent)
    prefix = "would be deleted: "
    listed = {line.removeprefix(prefix) for line in done.stdout.splitlines() if line.startswith(prefix)}
    before = {str(path.relative_to(lake)) for path in lake.rglob("*") if path.is_file()}
    assert listed
    assert listed <= before
    evalake_here("forget", "--dataset", "mine", "--lake", lake, folder=lake.parent)
    after = {str(path.relative_to(lake)) for path in lake.rglob("*") if path.is_file()}
    gone = {path for path in before - after if path.endswith(".parquet")}
    assert gone == {path for path in listed if path.endswith(".parquet")}


@pytest.mark.parametrize("which", ["folder", "one"])
def test_old_reports_behind_a_link_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: str) -> None:
    outside, reports = tmp_path / "outside", tmp_path / "reports"
    (outside / "run").mkdir(parents=True)
    for name in (PAGE, DATA):
        (outside / "run" / name).write_text("precious")
        os.utime(outside / "run" / name, (OLD, OLD))
    if which == "folder":
        reports.symlink_to(outside)
    else:
        reports.mkdir()
        (reports / "run").symlink_to(outside / "run")
    monkeypatch.setenv("EVALAKE_REPORTS", str(reports))
    with pytest.raises(LakeError, match="is a link to"):
        remove_expired(Retention(reports_days=1))
    assert len(everything(outside)) == 2
    shutil.rmtree(outside)


def test_a_run_with_a_hostile_name_names_no_place_to_look_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALAKE_REPORTS", str(tmp_path / "reports"))
    (tmp_path / "reports").mkdir()
    assert not [place for place in places(["../..", "/etc", ".."]) if "the report of a run" in place]
