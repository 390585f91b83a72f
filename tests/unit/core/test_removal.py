"""Files go, and nothing else; tests/attacks/test_links.py has what somebody planted."""

from pathlib import Path

import pytest

from evalake.core.errors import LakeError
from evalake.core.files import links_below, remove_below, require_no_links


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
