"""Whether a lake can be written to is found out before a run, and nothing is left behind by it."""

from pathlib import Path

import pytest

from evalake.core.errors import LakeError
from evalake.storage.commit import require_write_access
from evalake.storage.lake import Lake


def test_a_lake_that_is_there_or_can_be_made_is_reachable_and_stays_as_it_is(tmp_path: Path) -> None:
    require_write_access(Lake(str(tmp_path)))
    require_write_access(Lake(str(tmp_path / "not" / "yet")))
    assert list(tmp_path.iterdir()) == []


def test_a_lake_whose_name_engines_cannot_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LakeError, match="engines misread '='"):
        require_write_access(Lake(str(tmp_path / "a=b")))


def test_a_lake_below_a_file_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(LakeError, match=r"file/lake is not writable \(.+\): name another with --lake"):
        require_write_access(Lake(str(tmp_path / "file" / "lake")))
