"""What the doctor says of this machine, without a server."""

import importlib.metadata
from pathlib import Path
from types import SimpleNamespace

import pytest

from evalake.admin import doctor
from evalake.admin.doctor import Diagnosis, Level, Place, examine
from evalake.core.configuration import Configuration
from evalake.storage.lake import Lake


@pytest.fixture(autouse=True)
def no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PREFECT_API_URL", raising=False)


def look(folder: Path) -> dict[str, Diagnosis]:
    """What each check finds, with the lake in `folder`."""
    return {check.name: found for check, found in examine(Place(Lake(str(folder)), Configuration()))}


def test_without_a_server_the_next_step_is_said_and_this_machine_is_looked_at(tmp_path: Path) -> None:
    found = look(tmp_path / "lake")
    assert [*found] == ["versions", "lake", "disk", "keys", "sql", "server"]
    assert found["server"].level == Level.HINT
    assert "evalake up" in found["server"].mend
    assert found["versions"].level == Level.OK
    assert not (tmp_path / "lake").exists()


def test_what_will_be_gone_soon_is_a_hint_where_the_servers_are_new(tmp_path: Path) -> None:
    lake, configuration = Lake(str(tmp_path)), Configuration()
    assert Place(lake, configuration).soon("no worker", "start one") == Diagnosis(
        Level.PROBLEM, "no worker", "start one"
    )
    told = Place(lake, configuration, servers_are_new=True).soon("no worker", "start one")
    assert (told.level, told.message) == (Level.HINT, "no worker")
    assert "look again" in told.mend


def test_a_library_outside_the_bounds_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.metadata.version
    monkeypatch.setattr(doctor, "version", lambda name: "2.1.9" if name == "sqlalchemy" else real(name))
    found = look(tmp_path)["versions"]
    assert found.level == Level.PROBLEM
    assert "sqlalchemy 2.1.9 (needs <2.1,>=2.0)" in found.message


@pytest.mark.parametrize(("free", "level"), [(10**8, Level.PROBLEM), (10**9, Level.HINT), (10**10, Level.OK)])
def test_room_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, level: Level) -> None:
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda folder: SimpleNamespace(free=free))  # type: ignore[attr-defined]
    assert look(tmp_path / "not" / "yet" / "there")["disk"].level == level


@pytest.mark.parametrize(("known", "level"), [(0, Level.HINT), (3, Level.HINT), (4, Level.OK)])
def test_whether_the_kernel_confines_queries_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: int, level: Level
) -> None:
    monkeypatch.setattr("evalake.storage.sql.start.landlock_version", lambda: known)
    assert look(tmp_path)["sql"].level == level


def test_a_lake_where_nothing_can_be_written_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    found = look(tmp_path / "file" / "lake")["lake"]
    assert found.level == Level.PROBLEM
    assert "not writable" in found.message or "cannot read" in found.message
