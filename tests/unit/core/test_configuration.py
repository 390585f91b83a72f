"""`evalake.toml`: what it says is read, and what it cannot mean is refused in one line that names file and entry."""

from pathlib import Path

import pytest

from evalake.core.configuration import Configuration, read_configuration
from evalake.core.errors import ConfigurationError
from tests.cases import cases_beside

CASES = cases_beside(__file__, "entries.json")


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "evalake.toml"
    path.write_bytes(text.encode("utf-8") if isinstance(text, str) else text)
    return path


def refused(path: Path) -> str:
    with pytest.raises(ConfigurationError) as caught:
        read_configuration(path)
    message = str(caught.value)
    assert "\n" not in message
    assert str(path) in message
    return message


def test_the_file_of_the_working_directory_is_read_if_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert read_configuration() == Configuration()
    written(tmp_path, "batch_size = 7")
    assert read_configuration().batch_size == 7


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a configuration that nobody named."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (work := tmp_path / "work").mkdir()
    monkeypatch.chdir(work)
    written(work, "batch_size = 7")
    return work


def test_a_file_that_only_lies_there_is_not_trusted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not read_configuration().trusted
    assert read_configuration(Path("evalake.toml")).trusted
    monkeypatch.setenv("EVALAKE_HOME", str(folder.parent))
    assert not read_configuration().trusted
    monkeypatch.setenv("EVALAKE_HOME", str(folder))
    assert read_configuration().trusted


def test_the_file_that_the_environment_names_goes_before_the_folders(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALAKE_CONFIG", str(folder / "evalake.toml"))
    assert read_configuration().trusted
    monkeypatch.setenv("EVALAKE_CONFIG", str(folder / "absent.toml"))
    with pytest.raises(ConfigurationError, match=r"absent\.toml"):
        read_configuration()


def test_the_users_own_file_is_read_where_the_folder_has_none(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "config" / "evalake").mkdir(parents=True)
    written(tmp_path / "config" / "evalake", "batch_size = 9")
    assert read_configuration().batch_size == 7
    (folder / "evalake.toml").unlink()
    assert read_configuration().batch_size == 9
    assert read_configuration().trusted


@pytest.mark.parametrize(("name", "value"), [("trusted_proxies", '["0.0.0.0/0"]'), ("score_on_completion", "true")])
def test_the_folder_may_not_say_whom_the_service_believes_or_what_it_asks(folder: Path, name: str, value: str) -> None:
    written(folder, f"[service]\n{name} = {value}")
    with pytest.raises(ConfigurationError, match=rf"may not set service\.{name}.*--trust"):
        read_configuration()
    assert getattr(read_configuration(folder / "evalake.toml").service, name)
    written(folder, "trusted = true")
    with pytest.raises(ConfigurationError, match="there is no such setting"):
        read_configuration()


@pytest.mark.parametrize(("text", "entry"), CASES["wrong"])
def test_an_entry_that_cannot_be_is_named(tmp_path: Path, text: str, entry: str) -> None:
    message = refused(written(tmp_path, text))
    assert f", {entry}: " in message
    assert "sk-secret" not in message


@pytest.mark.parametrize("text", ["batch_size = ", "[models", "a = 1\na = 2", b"\xff\xfe", b"a = '\xe9'", "\x00"])
def test_a_file_that_is_not_toml_is_named(tmp_path: Path, text: str | bytes) -> None:
    assert "is not valid TOML" in refused(written(tmp_path, text))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    assert "there is no such file" in refused(tmp_path / "absent.toml")
    assert "no regular file" in refused(tmp_path)
