"""Sources of samples: files, tables, plain text and hubs."""

import gzip
import json
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalake.core.errors import SourceError
from evalake.core.hashing import canonical_json
from evalake.sdk import Dataset, Sample, Skipped, remote, sources
from evalake.sdk.dataset import SampleTable, equal, near, summary
from evalake.sdk.sample import Record
from evalake.sdk.sources import expanded
from evalake.sdk.tabular import encoding_of

# Tables of records: what is read of each kind, what a mapping says of its columns, and what memory that takes.

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


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, None), ("x", "x"), (1, "1"), (True, "true"), (0.5, "0.5"), (float("nan"), None), (["a"], '["a"]')],
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


# Tables that are packed, many, in a bucket, in a database or at Hugging Face are read as any other table is.

TABLE = SampleTable("quiz", {"input": "question", "target": "answer"})


def inputs(source: str) -> list[str]:
    return [sample.input for sample in TABLE(source).samples]


def test_a_packed_table_is_read_in_its_own_form(tmp_path: Path) -> None:
    long = "x" * 200_000
    packed = tmp_path / "q.csv.gz"
    packed.write_bytes(gzip.compress(f"question;answer\nWie groß?;{long}\n".encode("utf-16")))
    (sample,) = TABLE(str(packed)).samples
    assert (sample.input, sample.target, TABLE(str(packed)).name) == ("Wie groß?", json.dumps(long), "q")
    assert TABLE(str(packed)).notes == ("q.csv: read as columns separated by semicolons, UTF-16",)
    packed.write_bytes(packed.read_bytes()[:-9])
    with pytest.raises(SourceError, match=r"q\.csv\.gz cannot be unpacked"):
        inputs(str(packed))


def test_what_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "LARGEST_IN_ALL", 2**20)
    (tmp_path / "q.jsonl.gz").write_bytes(gzip.compress(b"{}\n" * 2**20))
    with pytest.raises(SourceError, match="holds more than 1 MB"):
        inputs(str(tmp_path / "q.jsonl.gz"))


def test_a_pattern_or_a_folder_stands_for_its_tables(tmp_path: Path) -> None:
    for name in ("b.tsv", "a.csv", "c.csv.gz", "notes.md"):
        (tmp_path / name).write_text("question,answer\n")
    everything = ["a.csv", "b.tsv", "c.csv.gz"]
    assert expanded(".", tmp_path) == everything
    assert expanded("*?input=q", tmp_path) == [f"{name}?input=q" for name in everything]
    assert expanded(f"{tmp_path}/*.csv") == [str(tmp_path / "a.csv")]
    assert expanded(str(tmp_path), folders=False) == [str(tmp_path)]
    with pytest.raises(SourceError, match="holds no table"):
        expanded("*.parquet", tmp_path)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "x.csv").symlink_to(tmp_path / "a.csv")
    for source in ("in/*.csv", "in"):
        with pytest.raises(SourceError, match=r"x\.csv is not read: link that leads out"):
            expanded(source, tmp_path)
    assert expanded("*/x.csv", tmp_path) == expanded("in/x.csv", tmp_path) == ["in/x.csv"]


def test_a_database_is_asked_and_never_written_to(tmp_path: Path) -> None:
    file = tmp_path / "q.db"
    with sqlite3.connect(file) as database:
        database.execute("create table quiz (ask, answer)")
        database.executemany("insert into quiz values (?, ?)", [("1+1", "2"), ("2+2", "4")])
        database.execute("create view long as select printf('%.*c', 100000000, 'A') as ask, (select ask from quiz)")
        database.execute("create table more (ask as (printf('%.*c', 1000, 'A')), answer)")
        database.execute(
            "create view endless as with recursive t(n) as (select 1 union all select n from t) select n from t"
        )
    database.close()
    assert inputs(f"sqlite:///{file}?table=quiz&question=ask") == ["1+1", "2+2"]
    assert inputs(f"sqlite:///{file}?query=select ask question from quiz where answer > '3'") == ["2+2"]
    for computed in (
        "table=long",
        "table=endless",
        "query=select 1 from (select * from LONG)",
        "table=more",
        "query=select ask from more",
    ):
        with pytest.raises(SourceError, match=r"is a view, not a table|is computed, not stored"):
            inputs(f"sqlite:///{file}?{computed}")
    for hostile in ("query=delete from quiz", "query=attach '/tmp/x.db' as x", "table=quiz;drop", "table=nowhere"):
        with pytest.raises(SourceError):
            inputs(f"sqlite:///{file}?{hostile}")
    os.mkfifo(tmp_path / "q.db-wal")
    with pytest.raises(SourceError, match="no regular file"):
        inputs(f"sqlite:///{file}?table=quiz")
    (tmp_path / "q.db-wal").unlink()
    assert len(inputs(f"sqlite:///{file}?table=quiz&question=ask")) == 2
    with pytest.raises(SourceError, match="names no user"):
        inputs("postgresql://127.0.0.1:9/x?table=quiz")


def test_an_object_of_a_bucket_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    boto3 = pytest.importorskip("boto3")
    from moto.server import ThreadedMotoServer

    for name, value in (("AWS_ACCESS_KEY_ID", "x"), ("AWS_SECRET_ACCESS_KEY", "x"), ("AWS_REGION", "us-east-1")):
        monkeypatch.setenv(name, value)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://{}:{}".format(*server.get_host_and_port()))
        store = boto3.client("s3", region_name="us-east-1")
        store.create_bucket(Bucket="data")
        store.put_object(Bucket="data", Key="deep/q.csv.gz", Body=gzip.compress(b"ask\nWho?\n"))
        store.close()
        assert inputs("s3://data/deep/q.csv.gz?question=ask") == ["Who?"]
        with pytest.raises(SourceError, match=r"s3://data/nothing\.csv cannot be read"):
            inputs("s3://data/nothing.csv")
    finally:
        server.stop()


def test_a_split_of_hugging_face_is_read_from_a_local_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SourceError, match="is not of the form hf://"):
        inputs("hf://me/quiz")
    pytest.importorskip("datasets", reason="the extra hf is not installed")
    (tmp_path / "me" / "quiz").mkdir(parents=True)
    (tmp_path / "me" / "quiz" / "test.jsonl").write_text('{"ask": "Who?", "answer": 1}\n')
    (tmp_path / "me" / "quiz" / "train.jsonl").write_text('{"ask": "What?", "answer": 1}\n')
    monkeypatch.chdir(tmp_path)
    assert inputs("hf://me/quiz#test?question=ask") == ["Who?"]
    with pytest.raises(SourceError, match="cannot be loaded"):
        inputs("hf://me/quiz#nowhere?question=ask")


def test_duplicates_are_found_by_text_and_by_shingles() -> None:
    fox = "The quick brown fox jumps over the lazy dog, and runs away from the hunter."
    texts = ["What is 1 + 1?", "what  is 1 + 1?", fox, fox.replace("away ", ""), "What is 1 + 2?", "Something else"]
    assert equal(texts) == [[0, 1]]
    assert [(one, other) for one, other, _ in near(texts)] == [(2, 3)]
    assert list(near(["", "?", "!"])) == []


# A suite's own tables of samples: which columns they take, what is left out, and what stands for a missing name.

QUIZ = SampleTable("quiz", columns={"input": "question", "target": "answer"}, required=("input", "target"))


def written(folder: Path, *rows: Any) -> str:
    (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(folder / "questions.jsonl")


def test_a_record_is_a_sample_by_the_suites_own_names_of_columns(tmp_path: Path) -> None:
    row = {"sample_id": "s1", "question": "2 + 2?", "answer": {"is": 4}, "category": "sums", "cluster": 7, "more": "x"}
    (sample,) = QUIZ(written(tmp_path, row)).samples
    assert (sample.suite, sample.dataset, sample.sample_id, sample.input) == ("quiz", "questions", "s1", "2 + 2?")
    assert (sample.target, sample.category, sample.cluster, sample.label) == ('{"is": 4}', "sums", "7", None)


def test_a_record_without_a_name_is_named_by_its_input(tmp_path: Path) -> None:
    row = {"question": "2 + 2?", "answer": 4}
    first, second = (QUIZ(written(tmp_path, {**row, "category": kind})).samples[0] for kind in ("a", "b"))
    assert first.sample_id == second.sample_id
    assert len(first.sample_id) == 16


def test_what_lacks_something_or_cannot_be_stored_is_left_out_with_the_reason(tmp_path: Path) -> None:
    good = {"question": "2 + 2?", "answer": 4}
    flaws = [
        ({"question": " ", "answer": 4}, "no question"),
        ({"question": "?", "answer": None}, "no answer"),
        ({"question": "a\x00", "answer": 4}, "not storable text (invalid Unicode or NUL)"),
        ({**good, "sample_id": "s1"}, None),
        ({**good, "sample_id": "s1"}, "duplicate"),
        ({**good, "sample_id": "s1", "answer": 5}, "sample_id already taken"),
        (good, "duplicate"),
        (["?"], "not a JSON object"),
    ]
    dataset = QUIZ(written(tmp_path, good, *(row for row, _ in flaws)))
    assert [left.reason for left in dataset.skipped] == [reason for _, reason in flaws if reason]
    assert len(dataset.samples) == 2
    assert [left.reason for left in dataset.skipped if left.payload is None] == ["duplicate"] * 2, "refused is the rest"


DOUBLED = [
    '{"question": "1 + 1?", "answer": 2, "answer": 3}',
    '{"question": "1 + 1?", "Answer": 2, "ANSWER ": 3}',
    '{"question": "1 + 1?", "answer": 2, "note": {"by": "a", "by": "b"}}',
]


def test_an_object_that_names_a_field_twice_is_refused(tmp_path: Path) -> None:
    good = {"question": "2 + 2?", "answer": 4}
    lines = tmp_path / "twice.jsonl"
    lines.write_text("\n".join([json.dumps(good), *DOUBLED]))
    dataset = QUIZ(str(lines))
    assert [(left.where, left.reason) for left in dataset.skipped] == [
        (f"twice.jsonl:{number}", sources.DOUBLED_KEY) for number in (2, 3, 4)
    ]
    assert len(dataset.samples) == 1
    array = tmp_path / "twice.json"
    array.write_text(f"[{json.dumps(good)}, {DOUBLED[1]}]")
    assert [left.reason for left in QUIZ(str(array)).skipped] == [sources.DOUBLED_KEY]
    array.write_text(f"[{DOUBLED[0]}]")
    with pytest.raises(SourceError, match="names 'answer' twice in one object"):
        QUIZ(str(array))


def test_columns_of_other_names_are_mapped_by_the_source(tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_text("ask,say\n2 + 2?,4\n")
    (sample,) = QUIZ(f"{tmp_path}/q.csv?question=ask&answer=say").samples
    assert (sample.input, sample.target) == ("2 + 2?", '"4"')
    with pytest.raises(SourceError, match="has no column 'question'"):
        QUIZ(f"{tmp_path}/q.csv")


def test_a_source_is_a_table_or_the_starter_data(tmp_path: Path) -> None:
    starter = written(tmp_path, {"question": "2 + 2?", "answer": 4})
    with_starter = SampleTable("quiz", QUIZ.columns, QUIZ.required, Path(starter))
    assert with_starter("starter").name == "starter"
    near = str(Path(starter).with_name(f"x{Path(starter).name}"))
    for source, words in (
        ("nowhere.csv", r"there is no dataset source 'nowhere.csv', and no file /.*nowhere.csv: give `starter`"),
        (near, rf"and no file {near}; did you mean {Path(starter).name}\?$"),
        (str(tmp_path), "of no known kind"),
    ):
        with pytest.raises(SourceError, match=words):
            QUIZ(source)
    with pytest.raises(SourceError, match="has no column 'question'"):
        QUIZ(written(tmp_path, {"answer": 4}))


# The encoding and the delimiter of a text are found out from its bytes.

TEXT = "name,value\nMärz,1\n"


def text_form_written(folder: Path, content: bytes) -> Path:
    (folder / "t.csv").write_bytes(content)
    return folder / "t.csv"


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        (b"", "utf-8"),
        (TEXT.encode(), "utf-8"),
        (TEXT.encode("utf-8-sig"), "utf-8-sig"),
        (TEXT.encode("utf-16"), "utf-16"),
        (TEXT.encode("utf-16-le"), "utf-16-le"),
        (TEXT.encode("utf-16-be"), "utf-16-be"),
        (TEXT.encode("utf-32"), "utf-32"),
        (TEXT.encode("latin-1"), "cp1252"),
        (b"x" * 2_000_000 + "ä".encode("latin-1"), "cp1252"),
        ("für".encode() + b"\xff", "utf-8"),  # damaged UTF-8 is no Latin-1
    ],
)
def test_an_encoding_is_told(tmp_path: Path, content: bytes, encoding: str) -> None:
    assert encoding_of(text_form_written(tmp_path, content)) == encoding
