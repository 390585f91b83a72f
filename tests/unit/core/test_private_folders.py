"""Folders of the user alone: what others have put there is told, and what is made there is closed to them."""

import os
from pathlib import Path

import pytest

from evalake.core.files import CACHE, cache_folder, is_ours


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
