"""Prefect's settings are those that Prefect itself would find."""

from pathlib import Path

import pytest
from prefect.settings import PREFECT_API_URL, PREFECT_PROFILES_PATH, load_profiles, temporary_settings

from evalake.core.prefect_settings import prefect_home, prefect_setting

PROFILES = """active = "mine"
[profiles.mine]
PREFECT_API_URL = "http://mine:4200/api"
[profiles.other]
PREFECT_API_URL = "http://other:4200/api"
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with two profiles."""
    for name in ("PREFECT_API_URL", "PREFECT_PROFILE", "PREFECT_PROFILES_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path))
    (tmp_path / "profiles.toml").write_text(PROFILES)
    return tmp_path


def test_the_active_profile_counts_and_the_environment_more(monkeypatch: pytest.MonkeyPatch) -> None:
    assert prefect_setting("PREFECT_API_URL") == "http://mine:4200/api"
    assert prefect_setting("PREFECT_API_KEY") is None
    monkeypatch.setenv("PREFECT_PROFILE", "other")
    assert prefect_setting("PREFECT_API_URL") == "http://other:4200/api"
    monkeypatch.setenv("PREFECT_API_URL", "http://named:4200/api")
    assert prefect_setting("PREFECT_API_URL") == "http://named:4200/api"


def test_prefect_finds_the_same_in_a_profile(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with temporary_settings({PREFECT_PROFILES_PATH: home / "profiles.toml"}):
        profiles = load_profiles()
    for name in ("mine", "other"):
        monkeypatch.setenv("PREFECT_PROFILE", name)
        assert prefect_setting("PREFECT_API_URL") == profiles[name].settings[PREFECT_API_URL]


@pytest.mark.parametrize("content", ["no TOML", 'active = "nobody"'])
def test_without_a_profile_there_is_nothing(home: Path, content: str) -> None:
    (home / "profiles.toml").write_text(content)
    assert prefect_setting("PREFECT_API_URL") is None
    (home / "profiles.toml").unlink()
    assert prefect_setting("PREFECT_API_URL") is None


def test_the_home_is_a_hidden_folder_unless_it_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert prefect_home() == home
    monkeypatch.setenv("PREFECT_HOME", "")
    assert prefect_home() == Path.home() / ".prefect"
    monkeypatch.setenv("PREFECT_HOME", "~/elsewhere")
    assert prefect_home() == Path.home() / "elsewhere"
