"""Files: which are read, written, removed and private."""

import os
import stat
from pathlib import Path

import pytest

from evalake.core.configuration import CONFIGURATION_FILE, FILE_VARIABLE, HOME_VARIABLE, read_configuration, suite_paths
from evalake.core.errors import ConfigurationError, LakeError, UsageError
from evalake.core.files import (
    CACHE,
    LINK_OUT,
    NOT_REGULAR,
    TOO_LARGE,
    TOO_MUCH,
    FileRefusedError,
    Files,
    cache_folder,
    is_ours,
    links_below,
    output_file,
    read_file,
    remove_below,
    require_no_links,
    write_file,
)
from tests.cases import cases_beside

CASES = cases_beside(__file__, "prompts.json")

# Files that others made are read only where they are what they seem.


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    (tmp_path / "id_rsa").write_text("a private key")
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "a.txt").write_text("a private key")
    (folder := tmp_path / "dataset").mkdir()
    (folder / "own.txt").write_text("own")
    (folder / "link.txt").symlink_to(tmp_path / "id_rsa")
    (folder / "linked").symlink_to(tmp_path / "secrets")
    (folder / "within.txt").symlink_to("own.txt")
    os.mkfifo(folder / "pipe.txt")
    (folder / "device.txt").symlink_to("/dev/zero")
    (folder / "loop.txt").symlink_to("loop.txt")
    return folder


def reason(files: Files, name: str) -> str:
    with pytest.raises(FileRefusedError) as refused:
        files.read(files.root / name)
    assert "a private key" not in str(refused.value)
    with pytest.raises(FileRefusedError):
        files.check(files.root / name)
    return refused.value.reason


def test_nothing_outside_the_root_is_read(dataset: Path) -> None:
    files = Files(dataset)
    assert files.read(dataset / "own.txt") == files.read(dataset / "within.txt") == b"own"
    for name in ("link.txt", "linked/a.txt", "device.txt", "../id_rsa"):
        assert reason(files, name) == LINK_OUT


def test_pipes_and_folders_hold_nobody_up(dataset: Path) -> None:
    assert reason(Files(dataset), "pipe.txt") == NOT_REGULAR
    assert reason(Files(dataset), "") == NOT_REGULAR
    assert reason(Files(dataset), "loop.txt")


def test_sizes_are_bounded_for_each_file_and_in_all(dataset: Path) -> None:
    assert reason(Files(dataset, largest=2), "own.txt") == TOO_LARGE
    files = Files(dataset, in_all=5)
    files.read(dataset / "own.txt")
    assert reason(files, "own.txt") == TOO_MUCH


def test_what_the_user_names_is_read_wherever_its_link_leads(dataset: Path) -> None:
    assert read_file(dataset / "link.txt") == b"a private key"
    with pytest.raises(FileRefusedError, match="no regular file"):
        read_file(Path("/dev/zero"))


# Files are written whole or not at all; tests/attacks/test_pages.py has what somebody planted.


def test_a_file_appears_once_it_is_whole(tmp_path: Path) -> None:
    with output_file(tmp_path / "out") as file:
        file.write(b"whole")
        assert not (tmp_path / "out").exists()
    assert (tmp_path / "out").read_bytes() == b"whole"


def test_the_umask_decides_who_reads_a_file(tmp_path: Path) -> None:
    write_file(tmp_path / "out", "")
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o666 & ~mask


def test_a_folder_where_all_may_write_their_own_is_good_enough(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)  # as /tmp is
    write_file(tmp_path / "out", "text")
    tmp_path.chmod(0o777)
    with pytest.raises(UsageError, match="all users may write"):
        write_file(tmp_path / "out", "text")


# Folders of the user alone: what others have put there is told, and what is made there is closed to them.


def test_a_link_that_another_user_has_put_there_leads_nowhere(tmp_path: Path) -> None:
    (mine := tmp_path / "mine").mkdir()
    (place := tmp_path / "place").symlink_to(mine)
    assert is_ours(place)  # one's own may lead elsewhere
    if os.geteuid() == 0:
        os.lchown(place, 12345, 12345)
        assert not is_ours(place)


def test_the_cache_is_where_the_user_wants_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(CACHE, str(tmp_path))
    assert cache_folder() == tmp_path / "evalake"
    monkeypatch.delenv(CACHE)
    monkeypatch.setenv("HOME", "/home/me")
    assert cache_folder() == Path("/home/me/.cache/evalake")


# Files go, and nothing else; tests/attacks/test_links.py has what somebody planted.


def test_links_are_found_and_never_followed(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "up").symlink_to("..")
    (tmp_path / "nowhere").symlink_to("absent")
    assert sorted(path.name for path in links_below(tmp_path)) == ["nowhere", "up"]
    with pytest.raises(LakeError, match=r"nowhere is a link to 'absent'"):
        require_no_links(tmp_path)
    require_no_links(tmp_path, below=False)
    with pytest.raises(LakeError, match="up is a link"):
        require_no_links(tmp_path / "a" / "up", below=False)


def test_a_folder_on_the_way_that_became_a_link_is_not_entered(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").touch()
    (tmp_path / "table").mkdir()
    (tmp_path / "table" / "part").symlink_to(tmp_path / "outside")
    with pytest.raises(OSError, match="part"):
        remove_below(tmp_path / "table", ["part/file"])
    assert (tmp_path / "outside" / "file").exists()


# Prompts from files beside the configuration: their texts, and what is refused in one clear sentence.

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


@pytest.mark.parametrize(("entry", "message"), CASES["refused"])
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


def test_a_configuration_that_only_lies_there_names_no_prompts_and_no_templates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (work := tmp_path / "work").mkdir()
    monkeypatch.chdir(work)
    configuration(work, '[suites.guard]\ntemplates = "criteria"')
    with pytest.raises(ConfigurationError, match=r"may not set suites\.guard\.templates: .*--trust-folder"):
        read_configuration()
    file = configuration(work, SECTION + 'system = "absent.md"')
    with pytest.raises(ConfigurationError, match=r"may not set suites\.guard\.prompts: .*--trust-folder"):
        read_configuration()
    (work / "absent.md").write_text("there now")
    with pytest.raises(ConfigurationError, match="may not set"):
        read_configuration()
    assert read_configuration(file).suites["guard"]["prompts"]["mine"]["system"] == "there now"


# Suites of one's own are looked for where the user's own configuration says, and nowhere that merely is there.


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
