"""Files go, and nothing else; tests/attacks/test_links.py has what somebody planted."""

from pathlib import Path

import pytest

from evalake.core.errors import LakeError
from evalake.core.files import links_below, remove_below, require_no_links


def test_files_go_by_their_path_and_others_stay(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    for name in ("a/b/one", "a/two", "three"):
        (tmp_path / name).touch()
    remove_below(tmp_path, ["a/b/one", "three", "a/absent", "absent/at/all"])
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["two"]


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
