"""A new database is a copy of one that is migrated already; one that is there stays, whatever it is."""

import stat
from pathlib import Path

from service.local.database import is_migrated


def test_a_missing_one_is_made_for_its_user_alone(tmp_path: Path) -> None:
    database = tmp_path / "home" / "prefect.db"
    assert is_migrated(database)
    assert stat.S_IMODE(database.stat().st_mode) == 0o600
    assert [path.name for path in database.parent.iterdir()] == ["prefect.db"]
    assert is_migrated(database)


def test_what_is_no_database_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "prefect.db").write_text("mine")
    assert not is_migrated(tmp_path / "prefect.db")
    assert (tmp_path / "prefect.db").read_text() == "mine"
