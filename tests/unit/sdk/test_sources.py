"""Tables of records: what is read of each kind, what a mapping says of its columns, and what memory that takes."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalake.core.errors import SourceError
from evalake.core.hashing import canonical_json
from evalake.sdk import Dataset, Sample, Skipped, sources
from evalake.sdk.dataset import summary
from evalake.sdk.sample import Record

# Arrays free their memory through the pool that they came from, which they do not keep: it has to outlive them.
_POOLS: list[pa.MemoryPool] = []


def _most_memory_of_arrow(monkeypatch: pytest.MonkeyPatch, read: Callable[[], object]) -> int:
    """How many bytes Arrow held at once, while a file was read."""
    usual = pa.default_memory_pool()
    counting = pa.proxy_memory_pool(usual)
    _POOLS.append(counting)
    pa.set_memory_pool(counting)
    try:
        read()
    finally:
        pa.set_memory_pool(usual)
    most = counting.max_memory()
    assert most is not None
    return int(most)


@pytest.mark.slow
def test_a_long_cell_that_is_stored_once_and_stands_in_every_row_takes_little_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "set.parquet"
    once = pa.DictionaryArray.from_arrays(pa.array([0] * 256, pa.int32()), pa.array(["x" * 2**20]))
    table = pa.table({"command": once, "label": ["harmless"] * 256})
    pq.write_table(table, file, compression="zstd", store_schema=False)  # with it, Arrow keeps the cell once, too
    assert file.stat().st_size < 5000
    monkeypatch.setattr("evalake.sdk.tabular.LARGEST_CHUNK", 32 * 2**20)  # so that little is enough to see it
    most = _most_memory_of_arrow(monkeypatch, lambda: sum(1 for _ in sources.read_table(file, ["command"])))
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
    most = _most_memory_of_arrow(monkeypatch, lambda: read.extend(sources.read_table(file, ["command"])))
    assert most < 16 * 2**20
    (record,) = read
    assert isinstance(record, Record)
    assert record.values == {"command": "ls", "label": "harmless", "few": ["a", "b"]}
    with pytest.raises(SourceError, match="has lists in the column 'extra'"):
        list(sources.read_table(file, ["extra"]))


def write(tmp_path: Path, name: str, content: bytes) -> Path:
    (tmp_path / name).write_bytes(content)
    return tmp_path / name


@pytest.mark.parametrize(("name", "content"), [
    ("t.csv", b"\xef\xbb\xbfa,b\r\n1,\r\n\r\nx,y\r\n"),
    ("t.jsonl", b'\xef\xbb\xbf{"a": "1", "b": null}\n\n{"a": "x", "b": "y"}'),
    ("t.ndjson", b'{"a": "1", "b": null}\r\n{"a": "x", "b": "y"}\r\n'),
])  # fmt: skip
def test_each_kind_of_table_gives_its_records(tmp_path: Path, name: str, content: bytes) -> None:
    records = list(sources.read_table(write(tmp_path, name, content), ("a",)))
    assert [record.values for record in records if isinstance(record, Record)] == [
        {"a": "1", "b": None}, {"a": "x", "b": "y"}
    ]  # fmt: skip
    assert all(record.where.startswith(f"{name}:") for record in records)


def test_what_is_no_record_is_told_with_its_line(tmp_path: Path) -> None:
    file = write(tmp_path, "t.jsonl", b'{"a": 1}\nnonsense\n["a"]\n')
    assert [(left.where, left.reason) for left in sources.read_table(file, ()) if isinstance(left, Skipped)] == [
        ("t.jsonl:2", sources.NOT_JSON), ("t.jsonl:3", sources.NOT_JSON)
    ]  # fmt: skip


def test_a_field_is_in_its_column_and_values_have_meanings() -> None:
    mapping = sources.read_mapping(
        "label=bad&label.malicious=1&label.harmless=*&input=cmd&note.=none", ("input", "label", "note")
    )
    fields = {
        bad: mapping.field(Record("", {"cmd": "ls", "bad": bad, "note": "none"}, ""), "label") for bad in (1, 0, "x")
    }
    assert fields == {1: "malicious", 0: "harmless", "x": "harmless"}
    record = Record("", {"cmd": "ls", "note": "none"}, "")
    assert (mapping.field(record, "input"), mapping.field(record, "note")) == ("ls", None)
    assert set(mapping.needed(("input", "label"))) == {"cmd", "bad"}
    filled = sources.read_mapping("label.harmless=*", ("input", "label"))
    assert filled.needed(("input", "label")) == ("input",), "a star needs no column"
    assert filled.field(record, "label") == "harmless"


def test_a_path_that_is_there_has_no_mapping(tmp_path: Path) -> None:
    there = write(tmp_path, "what?.csv", b"")
    assert sources.split_source(str(there)) == (there, "")
    assert sources.split_source(f"{tmp_path}/t.csv?a=b") == (tmp_path / "t.csv", "a=b")


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, None), ("x", "x"), (1, "1"), (True, "true"), (0.5, "0.5"), (float("nan"), "nan"), (["a"], '["a"]')],
)
def test_a_cell_is_text_as_json_writes_it(value: object, text: str | None) -> None:
    assert sources.as_text(value) == text


@given(st.text(max_size=20))
def test_text_that_can_be_stored_is_unicode_without_nul(text: str) -> None:
    assert sources.is_storable(sources.storable(text.replace("\x00", "")))
    assert sources.is_storable(text) == (sources.storable(text) == text and "\x00" not in text)
    assert sources.is_storable(sources.as_payload(text))


@pytest.mark.slow
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) |
                    st.text(st.characters(exclude_categories=["Cs"])), lambda part: st.lists(part) |
                    st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), part)))  # fmt: skip
def test_a_decoded_value_is_written_as_it_is_hashed(value: object) -> None:
    assert sources.as_json(value) == canonical_json(value).decode()


@pytest.mark.parametrize("value", [float("nan"), {"a": [float("inf")]}])
def test_a_decoded_value_with_a_number_that_is_not_finite_is_refused(value: object) -> None:
    with pytest.raises(SourceError, match="not finite"):
        sources.as_json(value)


def test_surrogates_and_nul_cannot_be_stored() -> None:
    assert [sources.is_storable(text) for text in ("a", "名", "a\x00", "名\x00", "\ud800")] == [
        True,
        True,
        False,
        False,
        False,
    ]
    assert (sources.storable("a\ud800"), sources.as_payload("a\ud800\x00")) == ("a?", "a\\ud800\\x00")
    assert sources.as_json({"a\ud800": ["\udcff"]}) == '{"a?":["?"]}'


def test_a_summary_counts_by_category_and_by_reason() -> None:
    samples = [Sample("s", "d", str(n), "x", label=label, category=category) for n, (label, category) in
               enumerate((("bad", "shell"), ("bad", "shell"), ("good", None), (None, None)))]  # fmt: skip
    told = summary(Dataset("d", tuple(samples), (Skipped("1", "b"), Skipped("2", "a"), Skipped("3", "b"))))
    assert told.samples == {"good": 1, "shell": 2, "unlabelled": 1}
    assert list(told.skipped.items()) == [("a", 1), ("b", 2)]
