"""Files are written whole or not at all; tests/attacks/test_pages.py has what somebody planted."""

import os
import stat
from pathlib import Path

import pytest

from evalake.core.errors import UsageError
from evalake.core.files import output_file, write_file


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
