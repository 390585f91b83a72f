"""A new database is a copy of one that is migrated already; one that is there stays, whatever it is."""

import os
import stat
from pathlib import Path

import pytest

from service.local.database import is_migrated, template


def test_a_missing_one_is_made_for_its_user_alone(tmp_path: Path) -> None:
    database = tmp_path / "home" / "prefect.db"
    assert is_migrated(database)
    assert stat.S_IMODE(database.stat().st_mode) == 0o600
    assert [path.name for path in database.parent.iterdir()] == ["prefect.db"]
    assert is_migrated(database)


def test_a_template_that_another_user_has_made_is_not_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cache" / "evalake").mkdir(parents=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    template().write_text("with deployments of theirs")
    monkeypatch.setattr(os, "geteuid", lambda: template().stat().st_uid + 1)
    assert not is_migrated(tmp_path / "prefect.db")
    assert not (tmp_path / "prefect.db").exists()


def test_what_is_no_database_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "prefect.db").write_text("mine")
    assert not is_migrated(tmp_path / "prefect.db")
    assert (tmp_path / "prefect.db").read_text() == "mine"
