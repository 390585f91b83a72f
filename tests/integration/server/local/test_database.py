"""A new database is a copy of one that is migrated already; one that is there stays, whatever it is."""

import os
import stat
from pathlib import Path

import pytest

from evalake.server.local.database import is_migrated, template, usual_database


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


def test_a_server_starts_soonest_with_the_database_of_its_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "home"))
    assert usual_database() == tmp_path / "home" / "prefect.db"
    assert is_migrated(tmp_path / "home" / "prefect.db")
    assert (tmp_path / "home" / "prefect.db").is_file()


@pytest.mark.parametrize(
    "name", ["SERVER_DATABASE_CONNECTION_URL", "API_DATABASE_CONNECTION_URL", "SERVER_DATABASE_NAME"]
)
def test_a_database_elsewhere_is_left_to_prefect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path))
    with monkeypatch.context() as patched:
        patched.setenv(f"PREFECT_{name}", "postgresql+asyncpg://db/prefect")
        assert usual_database() is None
    (tmp_path / "profiles.toml").write_text(f'active = "team"\n[profiles.team]\nPREFECT_{name} = "elsewhere"\n')
    assert usual_database() is None
