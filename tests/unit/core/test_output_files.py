"""Files are written whole or not at all; tests/attacks/test_pages.py has what somebody planted."""

import os
import stat
from pathlib import Path

import pytest

from evalake.core.errors import UsageError
from evalake.core.files import make_folder, output_file, place_in, write_file


def test_a_file_appears_once_it_is_whole(tmp_path: Path) -> None:
    with output_file(tmp_path / "out") as file:
        file.write(b"whole")
        assert not (tmp_path / "out").exists()
    assert (tmp_path / "out").read_bytes() == b"whole"


def test_texts_are_utf8_and_line_ends_stay(tmp_path: Path) -> None:
    write_file(tmp_path / "out", "é\r\n\n")
    assert (tmp_path / "out").read_bytes() == b"\xc3\xa9\r\n\n"


def test_the_umask_decides_who_reads_a_file(tmp_path: Path) -> None:
    write_file(tmp_path / "out", "")
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o666 & ~mask


def test_a_folder_is_made_with_those_above_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert make_folder(Path("a/b"), own=True).is_dir()
    with pytest.raises(FileNotFoundError):
        write_file(Path("absent/out"), "")


def test_a_folder_where_all_may_write_their_own_is_good_enough(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)  # as /tmp is
    write_file(tmp_path / "out", "text")
    tmp_path.chmod(0o777)
    with pytest.raises(UsageError, match="all users may write"):
        write_file(tmp_path / "out", "text")


@pytest.mark.parametrize("name", ["import-1590377b65be", "r", "2026.11", "a_b-c", "3f8e"])
def test_names_of_runs_become_places(tmp_path: Path, name: str) -> None:
    assert place_in(tmp_path, name) == tmp_path / name
