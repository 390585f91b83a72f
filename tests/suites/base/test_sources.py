"""Tables of records: what is read of each kind, what a mapping says of its columns, and what memory that takes."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.errors import SourceError
from suites.base.sources import Record, read_table


def _most_memory_of_arrow(monkeypatch: pytest.MonkeyPatch, read: Callable[[], object]) -> int:
    """How many bytes Arrow held at once, while a file was read."""
    usual = pa.default_memory_pool()
    counting = pa.proxy_memory_pool(usual)
    pa.set_memory_pool(counting)
    try:
        read()
    finally:
        pa.set_memory_pool(usual)
    most = counting.max_memory()
    assert most is not None
    return int(most)


def test_a_long_cell_that_is_stored_once_and_stands_in_every_row_takes_little_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "set.parquet"
    once = pa.DictionaryArray.from_arrays(pa.array([0] * 256, pa.int32()), pa.array(["x" * 2**20]))
    table = pa.table({"command": once, "label": ["harmless"] * 256})
    pq.write_table(table, file, compression="zstd", store_schema=False)  # with it, Arrow keeps the cell once, too
    assert file.stat().st_size < 5000
    monkeypatch.setattr("suites.base.sources.LARGEST_CHUNK", 32 * 2**20)  # so that little is enough to see it
    most = _most_memory_of_arrow(monkeypatch, lambda: sum(1 for _ in read_table(file, ["command"])))
    assert most < 3 * 32 * 2**20


def test_a_list_of_a_thousand_long_cells_in_one_row_is_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "set.parquet"
    once = pa.DictionaryArray.from_arrays(pa.array([0] * 1000, pa.int32()), pa.array(["x" * 2**20]))
    extra = pa.ListArray.from_arrays(pa.array([0, 1000], pa.int32()), once)
    table = pa.table({"command": ["ls"], "label": ["harmless"], "extra": extra, "few": [["a", "b"]]})
    pq.write_table(table, file, compression="zstd", store_schema=False)
    assert file.stat().st_size < 5000
    read: list[object] = []
    most = _most_memory_of_arrow(monkeypatch, lambda: read.extend(read_table(file, ["command"])))
    assert most < 16 * 2**20
    (record,) = read
    assert isinstance(record, Record)
    assert record.values == {"command": "ls", "label": "harmless", "few": ["a", "b"]}
    with pytest.raises(SourceError, match="has lists in the column 'extra'"):
        list(read_table(file, ["extra"]))
