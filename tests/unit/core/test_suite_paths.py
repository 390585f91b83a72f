"""Suites of one's own are looked for where the user's own configuration says, and nowhere that merely is there."""

from pathlib import Path

import pytest

from evalake.core.configuration import CONFIGURATION_FILE, FILE_VARIABLE, HOME_VARIABLE, suite_paths
from evalake.core.errors import ConfigurationError


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of evalake's, in a working directory that has a configuration, too."""
    (tmp_path / "here" / "theirs").mkdir(parents=True)
    (tmp_path / "here" / CONFIGURATION_FILE).write_text('suite_paths = ["theirs"]')
    (tmp_path / "home" / "mine").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "home"))
    monkeypatch.delenv(FILE_VARIABLE, raising=False)
    return tmp_path / "home"


def test_what_lies_in_the_working_directory_is_not_asked(home: Path) -> None:
    assert suite_paths() == ()


def test_folders_are_named_from_where_their_file_is(home: Path) -> None:
    (home / CONFIGURATION_FILE).write_text('suite_paths = ["mine", "./mine"]')
    assert suite_paths() == (home / "mine",)


def test_a_file_that_the_user_named_is_asked(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FILE_VARIABLE, str(home.parent / "here" / CONFIGURATION_FILE))
    assert suite_paths() == (home.parent / "here" / "theirs",)


def test_an_entry_that_is_no_folder_is_named(home: Path) -> None:
    (home / CONFIGURATION_FILE).write_text('suite_paths = ["absent"]')
    with pytest.raises(ConfigurationError, match=r"names .*/home/absent, which is no folder"):
        suite_paths()
