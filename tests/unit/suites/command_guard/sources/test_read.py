"""Starter data, aegish command sets, tables with and without a mapping; what is left out, and what is refused."""

import json
import re
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evalake.core.errors import SourceError
from evalake.sdk import Dataset
from evalake.sdk.dataset import summary
from evalake.suites.command_guard.sources import read_dataset
from tests.cases import cases_beside
from tests.unit.suites.command_guard.sources.datasets import ROWS, left_out, write_lines

CASES = cases_beside(__file__, "aegish_counts.json")


def commands(dataset: Dataset) -> list[tuple[str, str | None, str | None]]:
    return [(sample.input, sample.label, sample.category) for sample in dataset.samples]


def test_starter_data_is_whole() -> None:
    dataset = read_dataset("starter")
    counts = summary(dataset)
    assert dataset.name == "starter"
    assert not dataset.skipped
    assert len(counts.samples) == 9
    assert all(sample.note and sample.difficulty for sample in dataset.samples)


def test_json_lines_with_the_fields_names(tmp_path: Path) -> None:
    row = ROWS[0] | {"sample_id": "mine/1", "reason": "only lists", "more": {"is": "ignored"}}
    dataset = read_dataset(write_lines(tmp_path / "mine.jsonl", row, *ROWS[1:]))
    assert dataset.name == "mine"
    assert commands(dataset) == [(r["command"], r["label"], r.get("category")) for r in ROWS]
    assert [sample.sample_id for sample in dataset.samples] == ["mine/1", "mine/71a8bd3f", "mine/7c876929"]
    assert (dataset.samples[0].note, dataset.samples[1].difficulty) == ("only lists", "plain")


def test_csv_json_lines_and_parquet_give_the_same_dataset(tmp_path: Path) -> None:
    columns = ["command", "label", "category", "difficulty"]
    cells = [[row.get(column) for column in columns] for row in ROWS]
    lines = [",".join(columns), *(",".join(f'"{cell}"' if cell else "" for cell in row) for row in cells)]
    (tmp_path / "set.csv").write_bytes("\r\n".join(lines).encode("utf-8-sig"))
    pq.write_table(pa.table({c: [row[i] for row in cells] for i, c in enumerate(columns)}), tmp_path / "set.parquet")
    for suffix in ("jsonl", "ndjson"):
        write_lines(tmp_path / f"set.{suffix}", *ROWS)
    read = [read_dataset(str(tmp_path / f"set.{suffix}")) for suffix in ("csv", "jsonl", "ndjson", "parquet")]
    assert read[0] == read[1] == read[2] == read[3]
    assert len(read[0].samples) == 3


MAPPED = [{"cmd": "ls -l", "bad": 0, "kind": "benign"}, {"cmd": "cat /etc/shadow", "bad": 1, "kind": "read"}]
MAPPING = (
    "?command=cmd&label=bad&label.malicious=1&label.harmless=0&category=kind&category.=benign&category.file-read=read"
)


def test_columns_and_values_are_mapped(tmp_path: Path) -> None:
    dataset = read_dataset(write_lines(tmp_path / "set.jsonl", *MAPPED) + MAPPING)
    assert commands(dataset) == [("ls -l", "harmless", None), ("cat /etc/shadow", "malicious", "file-read")]
    assert dataset.notes == ("label from the column 'bad': '0' is harmless (1), '1' is malicious (1)",)


def test_a_star_stands_for_all_other_values_and_needs_no_column(tmp_path: Path) -> None:
    path = tmp_path / "set.csv"
    path.write_text("command line,risk\nls,low\nrm -rf /,high\n")
    harmless = read_dataset(f"{path}?command=command+line&label.harmless=*")
    assert commands(harmless) == [("ls", "harmless", None), ("rm -rf /", "harmless", None)]
    both = "command=command%20line&label=risk&label.malicious=high&label.harmless=*"
    mixed = read_dataset(f"{path}?{both}&category=risk&category.=low&category.file-write=*")
    assert commands(mixed) == [("ls", "harmless", None), ("rm -rf /", "malicious", "file-write")]


def test_booleans_and_numbers_are_compared_as_json_writes_them(tmp_path: Path) -> None:
    pq.write_table(pa.table({"command": ["a", "b"], "bad": [True, False], "p": [0.5, None]}), tmp_path / "s.parquet")
    mapping = "label=bad&label.malicious=true&label.harmless=false&category=p&category.shell=0.5"
    dataset = read_dataset(f"{tmp_path}/s.parquet?{mapping}")
    assert commands(dataset) == [("a", "malicious", "shell"), ("b", "harmless", None)]


def test_a_category_may_stand_on_any_row(tmp_path: Path) -> None:
    rows = [
        {"command": "ls", "label": "Harmless ", "category": "listing"},
        {"command": "rm", "label": "UNSAFE"},
        {"command": "id", "label": "good", "category": " "},
    ]
    dataset = read_dataset(write_lines(tmp_path / "set.jsonl", *rows))
    assert commands(dataset) == [("ls", "harmless", "listing"), ("rm", "malicious", None), ("id", "harmless", None)]


FORMS = {
    "semicolons": ("set.csv", "command;label\nrm -rf /é;malicious\n".encode(), "columns separated by semicolons"),
    "bars": ("set.csv", "command|label\nrm -rf /é|malicious\n".encode(), "columns separated by bars"),
    "tabs": ("set.tsv", "command\tlabel\nrm -rf /é\tmalicious\n".encode(), "columns separated by tabs"),
    "tabs in csv": ("set.csv", "command\tlabel\nrm -rf /é\tmalicious\n".encode(), "columns separated by tabs"),
    "Latin-1": ("set.csv", "command,label\nrm -rf /é,malicious\n".encode("latin-1"), "Latin-1"),
    "UTF-16": ("set.csv", "command,label\nrm -rf /é,malicious\n".encode("utf-16"), "UTF-16"),
    "UTF-16 without a mark": ("set.csv", "command,label\nrm -rf /é,malicious\n".encode("utf-16-le"), "UTF-16-LE"),
    "UTF-16 lines": ("set.jsonl", '{"command": "rm -rf /é", "label": "bad"}\n'.encode("utf-16"), "UTF-16"),
    "array": ("set.json", '[{"command": "rm -rf /é", "label": "bad"}]'.encode(), "a JSON array"),
}


@pytest.mark.parametrize(("name", "content", "words"), FORMS.values(), ids=FORMS)
def test_the_form_of_a_table_is_found_out_and_said(
    tmp_path: Path, name: str, content: bytes, words: str | None
) -> None:
    (tmp_path / name).write_bytes(content)
    dataset = read_dataset(str(tmp_path / name))
    assert commands(dataset) == [("rm -rf /é", "malicious", None)]
    said = [note for note in dataset.notes if note.startswith(f"{name}: read as ")]
    assert bool(said) == (words is not None)
    assert all(words is not None and words in note for note in said)


def test_a_question_mark_may_be_part_of_a_file_name(tmp_path: Path) -> None:
    source = write_lines(tmp_path / "what?.jsonl", ROWS[0])
    assert read_dataset(source).name == "what?"


BAD_MAPPINGS = CASES["lines"]


@pytest.mark.parametrize(("mapping", "message"), BAD_MAPPINGS.items())
def test_a_wrong_mapping_is_named(tmp_path: Path, mapping: str, message: str) -> None:
    path = tmp_path / "set.csv"
    path.write_text("command,label\nls,harmless\n")
    with pytest.raises(SourceError) as caught:
        read_dataset(f"{path}?{mapping}")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_every_flaw_of_a_line_has_its_reason_and_the_rest_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    flaws: list[tuple[bytes, str]] = [
        (b"{", "not a JSON object"),
        (b'["ls"]', "not a JSON object"),
        (b"[" * 100_000, "not a JSON object"),
        (b'{"n": ' + b"9" * 10_000 + b"}", "not a JSON object"),
        (b"{}", "no command"),
        (b'{"command": "  ", "label": "harmless"}', "no command"),
        (b'{"command": ["ls"], "label": "harmless"}', "not storable text (invalid Unicode or NUL)"),
        (b'{"command": "a\\u0000b", "label": "harmless"}', "not storable text (invalid Unicode or NUL)"),
        (b'{"command": "a\\ud800b", "label": "harmless"}', "not storable text (invalid Unicode or NUL)"),
        (b'{"command": "a\xffb", "label": "harmless"}', "not storable text (invalid Unicode or NUL)"),
        (b'{"command": "b", "label": "harmless", "reason": "\\udfff"}', "not storable text (invalid Unicode or NUL)"),
        (b'{"command": "b"}', "label is neither malicious nor harmless"),
        (b'{"command": "ls", "label": "malicious", "category": "shell"}', "duplicate with another label"),
        (b'{"command": "b", "label": "harmless", "sample_id": "one"}', "sample_id already taken"),
        (b'{"command": "' + b"a" * 140_000 + b'", "label": "harmless"}', "command too long"),
        (b'{"command": "' + b"a" * 17_000_000 + b'", "label": "harmless"}', "line too long"),
    ]
    good = [
        b'\xef\xbb\xbf{"command": "ls", "label": "harmless", "sample_id": "one"}\r',
        b'{"command": "f\xc3\xbcr\xe2\x80\xa8", "label": "harmless"}',
        b"",
        b'{"command": "a\\r\\nb", "label": "harmless"}',
    ]
    path.write_bytes(b"\n".join([*good, *(line for line, _ in flaws), b'{"command": "end", "label": "harmless"}']))
    dataset = read_dataset(str(path))
    assert [sample.input for sample in dataset.samples] == ["ls", "für\u2028", "a\r\nb", "end"]
    assert {(left.where, left.reason) for left in dataset.skipped} == {
        (f"set.jsonl:{number}", reason) for number, (_, reason) in enumerate(flaws, start=5)
    }
    for left in dataset.skipped:
        assert left.payload is not None
        assert left.payload.encode("utf-8")
        assert "\x00" not in left.payload
        assert len(left.payload) < 10_100


def test_csv_rows_that_do_not_fit_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "set.csv"
    path.write_bytes(
        b'command,label\n"two\nlines",harmless\n\nls,harmless,more\nonly\n"a"b,harmless\n'
        + b"x" * 200_000
        + b',harmless\nf\xc3\xbcr,harmless\n\xff\xfe,harmless\n"says ""hi""",harmless\n"open,harmless\nls,harmless\n'
    )
    dataset = read_dataset(str(path))
    assert [sample.input for sample in dataset.samples] == ["two\nlines", "für", 'says "hi"']
    assert left_out(dataset) == {
        "unreadable CSV row": 5,  # two lines after a quote that nothing closes
        "command too long": 1,
        "not storable text (invalid Unicode or NUL)": 1,
    }


def test_aegish_command_sets(tmp_path: Path) -> None:
    shutil.copy(Path(__file__).with_name("aegish.json"), tmp_path / "set.json")
    dataset = read_dataset(str(tmp_path / "set.json"))
    assert commands(dataset) == [
        ("cat /etc/shadow", "malicious", "file-read"),
        ("ls", "harmless", None),
        ("df", "harmless", None),
        ("sh", "malicious", None),
    ]
    assert dataset.samples[0].sample_id == "set/cat_file-read_71a8bd3f"
    assert left_out(dataset) == {
        "function outside the eight": 1,
        "label is neither malicious nor harmless": 2,
        "not a JSON object": 1,
        "duplicate": 1,
    }


@pytest.mark.real_data
def test_the_real_aegish_sets_are_read_whole(real_data: Path) -> None:
    malicious = read_dataset(str(real_data / "aegish" / "gtfobins_commands.json"))
    assert summary(malicious).samples == CASES["real"]
    harmless = read_dataset(str(real_data / "aegish" / "harmless_commands.json"))
    assert summary(harmless).samples == {"harmless": 496}
    assert not malicious.skipped
    assert not harmless.skipped


BAD_SOURCES = {
    "missing": ("nowhere.csv", None, "there is no dataset source"),
    "no kind": ("set.txt", b"ls", "is of no known kind: tables are .jsonl"),
    "empty lines": ("set.jsonl", b"", "holds no command that can be used (it is empty)"),
    "empty csv": ("set.csv", b"", "is empty: it names no column"),
    "misleading name": ("t.csv?label=is_safe&label.malicious=1", b"command,is_safe\na,1\nb,0\n", "neither malicious"),
    "header only": ("set.csv", b"command,label\n", "it is empty"),
    "repeated column": ("set.csv", b"command,label,label\n", "two columns named 'label'"),
    "unreadable header": ("set.csv", b'"a"b\n', "the header of"),
    "all refused": ("set.jsonl", b"[]\n[]\n", "2 x not a JSON object"),
    "no column in any line": ("set.jsonl", b'{"cmd": "ls"}\n', "has no column 'command' (its columns are 'cmd')"),
    "no Parquet": ("set.parquet", b"PAR1nonsense", "cannot be read as Parquet"),
    "no JSON": ("set.json", b"{", "is not valid JSON"),
    "deep JSON": ("set.json", b"[" * 100_000, "is not valid JSON"),
    "JSON that is not UTF-8": ("set.json", b"\xff", "is not UTF-8 text: byte 0"),
    "JSON of another form": ("set.json", b'{"things": []}', "is no aegish command set (no list `commands`)"),
    "empty array": ("set.json", b"[]", "it is empty"),
    "unknown labels": ("set.csv", b"command,label\nls,ok\nrm,evil\n", "neither malicious nor harmless: 'ok' (1), "),
    "numbers for labels": (
        "set.csv",
        b"command,label\nls,0\nrm,1\n",
        "?label=label&label.malicious=1&label.harmless=0",
    ),
    "a mapping for no row": ("set.csv?label.malicious=x", b"command,label\nls,safe\n", "fits no row"),
    "a class that is none": ("set.csv?label.evil=x", b"command,label\nls,x\n", "gives label the value 'evil'"),
    "mapping of an aegish set": ("set.json?command=x", b"{}", "takes no column mapping"),
}


@pytest.mark.parametrize(("name", "content", "message"), BAD_SOURCES.values(), ids=BAD_SOURCES)
def test_a_bad_source_is_refused_in_one_line(tmp_path: Path, name: str, content: bytes | None, message: str) -> None:
    if content is not None:
        (tmp_path / name.partition("?")[0]).write_bytes(content)
    with pytest.raises(SourceError) as caught:
        read_dataset(str(tmp_path / name))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("source", ["", "no\x00thing", "x" * 5000, "?", "?command=x", "starter?command=x"])
def test_nonsense_for_a_source_is_refused(source: str) -> None:
    with pytest.raises(SourceError):
        read_dataset(source)


def test_text_that_is_not_utf8_in_parquet_is_refused(tmp_path: Path) -> None:
    column = pa.Array.from_buffers(pa.string(), 1, pa.array([b"a\xff"], pa.binary()).buffers())
    pq.write_table(pa.table({"command": column, "label": ["harmless"]}), tmp_path / "set.parquet")
    with pytest.raises(SourceError, match="cannot be read as Parquet after row 0"):
        read_dataset(str(tmp_path / "set.parquet"))


def test_a_column_that_cannot_be_unpacked_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalake.sdk.tabular.LARGEST_CHUNK", 2**20)
    pq.write_table(pa.table({"command": ["x" * 2**21], "label": ["harmless"]}), tmp_path / "set.parquet")
    with pytest.raises(SourceError, match="write it with smaller row groups"):
        read_dataset(str(tmp_path / "set.parquet"))


TWO = [("rm", "malicious"), ("ls", "harmless")]
OBJECTS = [{"command": command, "label": label} for command, label in TWO]


def table(names: str, *values: str) -> bytes:
    return f"{names}\nrm,{values[0]}\nls,{values[1]}\n".encode()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", table("Command,LABEL", "malicious", "harmless")),
        ("t.csv", table("command, label", " Malicious", " harmless ")),
        ("t.jsonl", b'{"Command": "rm", "Label": "malicious"}\n{"command": "ls", "label": "harmless"}\n'),
        ("t.json", json.dumps({"data": OBJECTS}).encode()),
        ("t.json", json.dumps({"count": 2, "Rows": [], "rows": OBJECTS}).encode("utf-16")),
        ("t.csv", table("command,is_malicious", "TRUE", "False")),
        ("t.csv", table("command,Malicious", "yes", "no")),
        ("t.csv", table("command,is_safe", "0", "1")),
        ("t.jsonl", b'{"command": "rm", "isMalicious": true}\n{"command": "ls", "isMalicious": false}\n'),
    ],
)
def test_names_and_labels_are_understood_without_a_mapping(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    dataset = read_dataset(str(tmp_path / name))
    assert [(each.input, each.label) for each in dataset.samples] == TWO
    assert not dataset.skipped


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (table("command,is_malicious,is_safe", "1,0", "0,1"), "'is_malicious', 'is_safe'"),
        (table("command,not_malicious", "0", "1"), "no column 'label'"),
        (table("command,malicious", "0.9", "0.1"), "'0.9' (1), '0.1' (1)"),
        (table("COMMAND,Command,label", "x,malicious", "y,harmless"), "two columns named 'command'"),
    ],
)
def test_labels_that_could_mean_two_things_are_refused(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(SourceError, match=re.escape(words)):
        read_dataset(str(tmp_path / "t.csv"))
