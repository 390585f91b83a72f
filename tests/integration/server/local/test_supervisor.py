"""The file that tells of a lake's servers: by lake, for one user alone, and only while they run."""

import os
import time
from pathlib import Path

import pytest

from evalake.core.errors import EvalakeError
from evalake.core.files import STATE
from evalake.server.local import supervisor

BACKGROUND = supervisor.Background(
    lake="/x",
    pid=1,
    prefect="http://127.0.0.1:1/api",
    password="a:b",
    pages="http://127.0.0.1:2",
    token="c",
    pools=("p",),
)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(STATE, str(tmp_path))
    return tmp_path


def test_it_is_found_while_its_supervisor_runs_and_by_that_lake_only(monkeypatch: pytest.MonkeyPatch) -> None:
    assert supervisor.find("s3://bucket/lake") is None
    with supervisor.held("s3://bucket/lake") as folder:
        assert supervisor.is_running("s3://bucket/lake")
        assert supervisor.find("s3://bucket/lake") is None  # it starts
        supervisor.tell(folder, BACKGROUND)
        assert supervisor.find("s3://bucket/lake") == BACKGROUND
        assert supervisor.find("s3://bucket/other") is None
    assert supervisor.find("s3://bucket/lake") is None
    assert not supervisor.is_running("s3://bucket/lake")


def test_servers_are_new_for_so_long_after_their_start() -> None:
    assert not supervisor.are_new("lake", 60)
    with supervisor.held("lake") as folder:
        supervisor.tell(folder, BACKGROUND)
        assert supervisor.are_new("lake", 60)
        started = time.time() - 61
        os.utime(folder / "up.json", (started, started))
        assert not supervisor.are_new("lake", 60)


def test_a_folder_is_one_lake_by_whatever_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert (
        supervisor.folder_of("lake") == supervisor.folder_of("./lake") == supervisor.folder_of(str(tmp_path / "lake"))
    )


def test_nobody_else_may_read_it_or_put_another_in_its_place(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STATE, str(state / ".local" / "state"))
    usual = os.umask(0)
    try:
        with supervisor.held("lake") as folder:
            supervisor.tell(folder, BACKGROUND)
            made = [each for each in (folder, *folder.parents) if each.is_relative_to(state / ".local")]
            assert [each.stat().st_mode & 0o777 for each in made] == [0o700] * 4
            assert (folder / "up.json").stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(usual)


@pytest.mark.parametrize("above", [0, 1], ids=["folder", "folder above"])
def test_what_another_user_has_put_there_is_neither_believed_nor_written_into(
    monkeypatch: pytest.MonkeyPatch, above: int
) -> None:
    with supervisor.held("lake") as folder:
        supervisor.tell(folder, BACKGROUND)
        theirs, stat = (folder, *folder.parents)[above], Path.lstat
        monkeypatch.setattr(Path, "lstat", lambda each: _of_another_user(stat(each)) if each == theirs else stat(each))
        assert supervisor.find("lake") is None
        assert not supervisor.is_running("lake")
        for use in (supervisor.make_folder_of, lambda lake: supervisor.held(lake).__enter__()):
            with pytest.raises(EvalakeError, match=f"another user's: name another place by {STATE}"):
                use("lake")


def _of_another_user(status: os.stat_result) -> os.stat_result:
    return os.stat_result((*status[:4], status.st_uid + 1, *status[5:]))


def test_a_lake_has_one_supervisor() -> None:
    with supervisor.held("lake"), pytest.raises(EvalakeError, match="already"), supervisor.held("lake"):
        raise AssertionError
    with supervisor.held("lake"):
        assert supervisor.is_running("lake")


def test_what_a_killed_supervisor_left_is_not_believed() -> None:
    with supervisor.held("lake") as folder:
        supervisor.tell(folder, BACKGROUND)
        left = (folder / "up.json").read_bytes()
    (folder / "up.json").write_bytes(left)
    assert supervisor.find("lake") is None


@pytest.mark.parametrize("text", ["", "[]", '{"pid": 1}', '{"pools": null}', "\xff"])
def test_a_file_that_is_not_ours_is_named(text: str) -> None:
    with supervisor.held("lake") as folder:
        (folder / "up.json").write_text(text, encoding="latin-1")
        with pytest.raises(EvalakeError, match=r"up\.json cannot be read"):
            supervisor.find("lake")
