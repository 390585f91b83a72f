"""Tables that are packed, many, in a bucket, in a database or at Hugging Face are read as any other table is."""

import gzip
import json
import sqlite3
from pathlib import Path

import pytest

from evalake.core.errors import SourceError
from evalake.sdk import remote
from evalake.sdk.dataset import SampleTable, equal, near
from evalake.sdk.sources import expanded

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


def test_a_database_is_asked_and_never_written_to(tmp_path: Path) -> None:
    file = tmp_path / "q.db"
    with sqlite3.connect(file) as database:
        database.execute("create table quiz (ask, answer)")
        database.executemany("insert into quiz values (?, ?)", [("1+1", "2"), ("2+2", "4")])
    database.close()
    assert inputs(f"sqlite:///{file}?table=quiz&question=ask") == ["1+1", "2+2"]
    assert inputs(f"sqlite:///{file}?query=select ask question from quiz where answer > '3'") == ["2+2"]
    for hostile in ("query=delete from quiz", "query=attach '/tmp/x.db' as x", "table=quiz;drop", "table=nowhere"):
        with pytest.raises(SourceError):
            inputs(f"sqlite:///{file}?{hostile}")
    assert len(inputs(f"sqlite:///{file}?table=quiz&question=ask")) == 2


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
