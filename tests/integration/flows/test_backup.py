"""The flow `backup`: the lake is copied and the copy checked; a copy that is not in order is no backup."""

from pathlib import Path

import pytest

from evalake.contracts.tables import CALLS
from evalake.core.errors import UsageError
from evalake.flows.backup import VARIABLE, BackupError, backup
from evalake.storage import ledger
from evalake.storage.lake import Lake
from tests.integration.flows.artifacts import newest_artifact
from tests.integration.storage.rows import call


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A lake of one table, for each takes time to be checked."""
    lake = Lake(str(tmp_path / "lake"))
    ledger.append(lake, [call(0), call(1)])
    return lake


def test_a_lake_is_copied_whole_and_only_what_is_new_the_next_time(lake: Lake, tmp_path: Path) -> None:
    copy = Lake(str(tmp_path / "backup"))
    state = backup(to=copy.uri, lake=lake.uri, return_state=True)
    described = f"Backup of {lake.uri} in {copy.uri}"
    assert (state.message or "").startswith(f"{described}: 1 tables, ")
    assert "all in order" in (state.message or "")
    assert copy.frame(CALLS).collect().equals(lake.frame(CALLS).collect())
    description, (first,) = newest_artifact("backup")
    assert (description, first["table"], first["files_there"]) == (described, "calls", 0)

    ledger.append(lake, [call(2)])
    backup(to=copy.uri, lake=lake.uri)
    _, (second,) = newest_artifact("backup")
    assert (second["files_there"], second["files_copied"]) == (first["files_copied"], 2)  # of data and of the log
    assert copy.frame(CALLS).collect().height == 3


def test_a_copy_whose_files_cannot_be_read_is_no_backup(lake: Lake, tmp_path: Path) -> None:
    copy = Lake(str(tmp_path / "backup"))
    backup(to=copy.uri, lake=lake.uri)
    (file,) = (Path(uri) for uri in copy.open(CALLS).file_uris())
    file.write_bytes(bytes(file.stat().st_size))
    with pytest.raises(BackupError, match=r"has \d+ findings; the first: calls "):
        backup(to=copy.uri, lake=lake.uri)


def test_the_worker_may_name_the_place_and_without_one_nothing_is_copied(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    state = backup(lake=lake.uri, return_state=True)
    assert state.name == "NotConfigured"
    assert state.message == f"no backup was made: set {VARIABLE} of the worker to a folder or URI"
    monkeypatch.setenv(VARIABLE, lake.uri)
    with pytest.raises(UsageError, match="cannot be the lake itself"):
        backup(lake=lake.uri)
