"""Files that others made are read only where they are what they seem."""

import os
from pathlib import Path

import pytest

from evalake.core.files import LINK_OUT, NOT_REGULAR, TOO_LARGE, TOO_MUCH, FileRefusedError, Files, read_file


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
