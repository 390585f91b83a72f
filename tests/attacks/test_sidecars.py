"""What lies beside a SQLite file as its journal or log is a file of the dataset like any other."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from evalake.core import files
from evalake.core.errors import SourceError
from evalake.suites.session_review.sources import database
from evalake.suites.session_review.sources.read import read_dataset
from tests.unit.suites.session_review.sources.tarsy_database import make_database

SIDECARS = ("-wal", "-journal")


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    """A folder with a database that is read, and one that is attacked."""
    (folder := tmp_path / "dataset").mkdir()
    make_database(folder / "good.db")
    make_database(folder / "evil.db")
    return folder


def reasons(dataset: Path) -> list[str]:
    read = read_dataset(str(dataset))
    assert [sample.sample_id for sample in read.samples] == ["over"]
    return [left.reason for left in read.skipped if left.where.startswith("evil.db") and "running" not in left.where]


@pytest.mark.parametrize("sidecar", SIDECARS)
def test_a_link_beside_a_database_leads_nowhere(dataset: Path, tmp_path: Path, sidecar: str) -> None:
    (tmp_path / "key").write_text("-----BEGIN OPENSSH PRIVATE KEY-----")
    (dataset / f"evil.db{sidecar}").symlink_to(tmp_path / "key")
    assert reasons(dataset) == [files.LINK_OUT]
    with pytest.raises(SourceError, match=files.LINK_OUT):
        read_dataset(str(dataset / "evil.db"))


@pytest.mark.parametrize("sidecar", SIDECARS)
@pytest.mark.parametrize("target", ["/dev/zero", "absent", "evil.db-journal"])
def test_nor_does_one_to_a_device_to_nothing_or_to_itself(dataset: Path, sidecar: str, target: str) -> None:
    (dataset / f"evil.db{sidecar}").symlink_to(target)
    assert len(reasons(dataset)) == 1


@pytest.mark.parametrize("sidecar", SIDECARS)
def test_a_pipe_beside_a_database_is_not_waited_for(dataset: Path, sidecar: str) -> None:
    os.mkfifo(dataset / f"evil.db{sidecar}")
    assert reasons(dataset) == [files.NOT_REGULAR]


@pytest.mark.parametrize("sidecar", SIDECARS)
def test_a_large_one_does_not_fill_the_disk(
    dataset: Path, tmp_path: Path, sidecar: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (temporary := tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    largest = 0

    state = database._state

    def measured(path: Path) -> "dict[Path, tuple[int, int]]":
        nonlocal largest
        found = state(path)
        largest = max(largest, sum(file.stat().st_size for file in temporary.rglob("*") if file.is_file()))
        return found

    monkeypatch.setattr(database, "_state", measured)
    with (dataset / f"evil.db{sidecar}").open("wb") as file:
        file.truncate(2**40)  # holes: it takes no room before it is copied
    assert reasons(dataset) == [files.TOO_LARGE]
    assert largest < 2**20
    assert list(temporary.iterdir()) == []


def test_database_and_log_together_are_bounded(dataset: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = (dataset / "evil.db").stat().st_size
    (dataset / "evil.db-wal").write_bytes(b"\0" * 4096)
    monkeypatch.setattr(database, "LARGEST_IN_ALL", size + 4000)
    assert reasons(dataset) == [files.TOO_MUCH]


def test_a_log_that_is_one_is_read(dataset: Path) -> None:
    with closing(sqlite3.connect(dataset / "evil.db")) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("UPDATE alert_sessions SET alert_type = 'Logged'")
        connection.commit()
        (sample,) = read_dataset(str(dataset / "evil.db")).samples
    assert sample.category == "Logged"
