"""Prompts from files beside the configuration: their texts, and what is refused in one clear sentence."""

from pathlib import Path

import pytest

from evalake.core.configuration import read_configuration
from evalake.core.errors import ConfigurationError

SECTION = "[suites.guard.prompts.mine]\n"


def configuration(folder: Path, text: str) -> Path:
    file = folder / "evalake.toml"
    file.write_text(text)
    return file


def test_the_texts_stand_in_the_place_of_the_files(tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "guard.md").write_text("\nDü bist ein Wächter.\n\n", encoding="utf-8")
    file = configuration(tmp_path, f'[suites.guard]\ntarget = 0.9\n{SECTION}system = "texts/guard.md"')
    expected = {"target": 0.9, "prompts": {"mine": {"system": "Dü bist ein Wächter."}}}
    assert read_configuration(file).suites["guard"] == expected


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ('system = "absent.md"', "names absent.md, but there is no such file beside the configuration"),
        ('system = "empty.md"', "names empty.md, which is empty"),
        ('system = "../secret.md"', "which lies outside the configuration's folder"),
        ('system = "/etc/hostname"', "which lies outside the configuration's folder"),
        ('system = "link.md"', "which lies outside the configuration's folder"),
        ('system = "."', "no regular file"),
        ('system = "binary.md"', "which is not UTF-8"),
        ('system = "nul.md"', "which holds a NUL"),
        ('system = "large.md"', "file too large"),
        ('system = "a\\u0000b"', "which is not UTF-8"),
        ("system = 3", "must name a file for each part"),
        ("", "must name a file for each part"),
    ],
)
def test_a_file_that_cannot_be_a_prompt_is_refused(tmp_path: Path, entry: str, message: str) -> None:
    (tmp_path / "secret.md").write_text("a secret")
    (work := tmp_path / "work").mkdir()
    (work / "empty.md").write_text(" \n")
    (work / "binary.md").write_bytes(b"\xff\xfe")
    (work / "nul.md").write_bytes(b"a\0b")
    (work / "large.md").write_bytes(b"x" * (2**20 + 1))
    (work / "link.md").symlink_to(tmp_path / "secret.md")
    with pytest.raises(ConfigurationError) as refused:
        read_configuration(configuration(work, SECTION + entry))
    assert message in str(refused.value)
    assert "suites.guard.prompts.mine" in str(refused.value)
    assert "a secret" not in str(refused.value)


def test_a_name_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="is not a prompt's name"):
        read_configuration(configuration(tmp_path, '[suites.guard.prompts."a,b"]\nsystem = "x.md"'))
    with pytest.raises(ConfigurationError, match="must be a table of prompts"):
        read_configuration(configuration(tmp_path, '[suites.guard]\nprompts = "x.md"'))


def test_a_folder_of_templates_is_read_part_by_part(tmp_path: Path) -> None:
    (folder := tmp_path / "criteria").mkdir()
    (folder / "request.md").write_text("Score it.\n")
    (folder / "notes.txt").write_text("for ourselves")
    file = configuration(tmp_path, '[suites.guard]\ntemplates = "criteria"')
    assert read_configuration(file).suites["guard"] == {"templates": {"request": "Score it."}}
    (folder / "request.md").rename(tmp_path / "request.md")
    with pytest.raises(
        ConfigurationError, match=r"suites\.guard\.templates names the folder criteria, in which no file"
    ):
        read_configuration(file)


def test_templates_that_are_no_folder_are_left_to_the_suite_and_others_refused(tmp_path: Path) -> None:
    named = configuration(tmp_path, '[suites.guard]\ntemplates = "shipped"')
    assert read_configuration(named).suites["guard"] == {"templates": "shipped"}
    (tmp_path.parent / "beside").mkdir(exist_ok=True)
    (tmp_path.parent / "beside" / "request.md").write_text("a secret")
    for given, said in (("3", "must name a set of templates"), ('"../beside"', "outside the configuration's folder")):
        with pytest.raises(ConfigurationError, match=said):
            read_configuration(configuration(tmp_path, f"[suites.guard]\ntemplates = {given}"))


def test_templates_of_a_configuration_that_only_lies_there_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    configuration(tmp_path, '[suites.guard]\ntemplates = "criteria"')
    with pytest.raises(ConfigurationError, match=r"may not set suites\.guard\.templates: .*--trust-folder"):
        read_configuration()


def test_a_configuration_that_only_lies_there_names_no_prompts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (work := tmp_path / "work").mkdir()
    monkeypatch.chdir(work)
    file = configuration(work, SECTION + 'system = "absent.md"')
    with pytest.raises(ConfigurationError, match=r"may not set suites\.guard\.prompts: .*--trust-folder"):
        read_configuration()
    (work / "absent.md").write_text("there now")
    with pytest.raises(ConfigurationError, match="may not set"):
        read_configuration()
    assert read_configuration(file).suites["guard"]["prompts"]["mine"]["system"] == "there now"
