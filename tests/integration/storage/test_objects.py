"""What is stored below a lake is listed, opened and written through the store that Delta uses."""

from pathlib import Path

import pytest
from pyarrow import fs

from evalake.storage.commit import file_sizes, open_store, write_object
from evalake.storage.lake import Lake


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    (tmp_path / "lake" / "table" / "part").mkdir(parents=True)
    (tmp_path / "lake" / "table" / "part" / "one").write_bytes(b"123")
    (tmp_path / "lake" / "two").write_bytes(b"")
    return Lake(str(tmp_path / "lake"))


def test_everything_is_listed_with_its_size_and_by_its_path_within(lake: Lake) -> None:
    assert file_sizes(lake) == {"table/part/one": 3, "two": 0}
    assert file_sizes(lake, "table") == {"part/one": 3}


def test_where_there_is_no_folder_there_is_nothing(lake: Lake, tmp_path: Path) -> None:
    assert file_sizes(lake, "absent") == {}
    assert file_sizes(Lake(str(tmp_path / "none"))) == {}


def test_what_is_written_in_pieces_is_read_whole(lake: Lake) -> None:
    store = open_store(lake, "table")
    assert write_object(store, "new", [b"ab", b"", b"cde"]) == 5
    with store.open_input_stream("new") as stream:
        assert stream.read() == b"abcde"
    assert store.get_file_info("new").type is fs.FileType.File
    assert file_sizes(lake)["table/new"] == 5
