"""Hostile files: sheets, sidecars of databases, and results of other tools."""

import copy
import csv
import io
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evalake.core import files
from evalake.core.errors import EvalakeError, SourceError
from evalake.sdk import sqlite
from evalake.sdk.sheets import read_sheet, write_sheet
from evalake.storage.sql.query import as_csv
from evalake.suites.declared.formats.detect import read_tool_results
from evalake.suites.declared.imported import merge, recorded
from evalake.suites.session_review.sources.read import read_dataset
from tests.unit.suites.formats.logs import (
    header,
    lm_eval_line,
    lm_eval_results,
    promptfoo_results,
    promptfoo_row,
    sample,
)
from tests.unit.suites.session_review.sources.tarsy_database import make_database

# Cells that a spreadsheet would run: sheets for labels and exports guard the same ones.

FORMULAS = [
    *(
        f"{before}{sign}1+1"
        for sign in "=+-@＝＋－＠﹢﹣﹦−"
        for before in ("", " ", "\t", "\u00a0", "\u200b", "\x00", "\u3000")
    ),
    "\ufeff=1+1",
    " \t\x1f =HYPERLINK(0)",
    "\r=1",
    "\n=1",
    "\tplain",
    "\rplain",
]
PLAIN = ["", "a=1", "1-2", " text", "a\n=1", "(=1)", "é"]


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_is_text_in_every_sheet(text: str) -> None:
    sheet = write_sheet([{"text": text}], ["text"], "csv")
    export = as_csv(pl.DataFrame({"text": [text]}), spreadsheet_safe=True)
    for written in (sheet, export):
        (cell,) = list(csv.reader(io.StringIO(written, newline="")))[1]
        assert cell == f"'{text}"
    ((_, line),) = read_sheet(sheet, "csv", ["text"])
    assert line == {"text": text}


@pytest.mark.parametrize("text", PLAIN)
def test_any_other_text_is_as_it_is(text: str) -> None:
    export = as_csv(pl.DataFrame({"n": [1], "text": [text]}), spreadsheet_safe=True)
    sheet = write_sheet([{"n": 1, "text": text}], ["n", "text"], "csv")
    for written in (sheet, export):
        assert list(csv.reader(io.StringIO(written, newline="")))[1] == ["1", text]


def test_a_name_of_a_column_is_guarded_too() -> None:
    assert as_csv(pl.DataFrame({" =1+1": [1]}), spreadsheet_safe=True).startswith("' =1+1")


# What lies beside a SQLite file as its journal or log is a file of the dataset like any other.

SIDECARS = ("-wal", "-journal")


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    """A folder with a database that is read, and one that is attacked."""
    (folder := tmp_path / "dataset").mkdir()
    make_database(folder / "good.db")
    make_database(folder / "evil.db")
    return folder


def reasons(dataset: Path) -> list[str]:
    read = read_dataset(str(dataset))
    assert [sample.sample_id for sample in read.samples] == ["over"]
    return [left.reason for left in read.skipped if left.where.startswith("evil.db") and "running" not in left.where]


@pytest.mark.parametrize("sidecar", SIDECARS)
def test_a_link_beside_a_database_leads_nowhere(dataset: Path, tmp_path: Path, sidecar: str) -> None:
    (tmp_path / "key").write_text("-----BEGIN OPENSSH PRIVATE KEY-----")
    (dataset / f"evil.db{sidecar}").symlink_to(tmp_path / "key")
    assert reasons(dataset) == [files.LINK_OUT]
    with pytest.raises(SourceError, match=files.LINK_OUT):
        read_dataset(str(dataset / "evil.db"))


@pytest.mark.parametrize("sidecar", SIDECARS)
@pytest.mark.parametrize("target", ["/dev/zero", "absent", "evil.db-journal"])
def test_nor_does_one_to_a_device_to_nothing_or_to_itself(dataset: Path, sidecar: str, target: str) -> None:
    (dataset / f"evil.db{sidecar}").symlink_to(target)
    assert len(reasons(dataset)) == 1


@pytest.mark.parametrize("sidecar", SIDECARS)
def test_a_pipe_beside_a_database_is_not_waited_for(dataset: Path, sidecar: str) -> None:
    os.mkfifo(dataset / f"evil.db{sidecar}")
    assert reasons(dataset) == [files.NOT_REGULAR]


@pytest.mark.parametrize("sidecar", SIDECARS)
def test_a_large_one_does_not_fill_the_disk(
    dataset: Path, tmp_path: Path, sidecar: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (temporary := tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    largest = 0

    state = sqlite._state

    def measured(path: Path) -> "dict[Path, tuple[int, int]]":
        nonlocal largest
        found = state(path)
        largest = max(largest, sum(file.stat().st_size for file in temporary.rglob("*") if file.is_file()))
        return found

    monkeypatch.setattr(sqlite, "_state", measured)
    with (dataset / f"evil.db{sidecar}").open("wb") as file:
        file.truncate(2**40)  # holes: it takes no room before it is copied
    assert reasons(dataset) == [files.TOO_LARGE]
    assert largest < 2**20
    assert list(temporary.iterdir()) == []


def test_database_and_log_together_are_bounded(dataset: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = (dataset / "evil.db").stat().st_size
    (dataset / "evil.db-wal").write_bytes(b"\0" * 4096)
    monkeypatch.setattr(sqlite, "LARGEST_IN_ALL", size + 4000)
    assert reasons(dataset) == [files.TOO_MUCH]


def test_a_log_that_is_one_is_read(dataset: Path) -> None:
    with closing(sqlite3.connect(dataset / "evil.db")) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("UPDATE alert_sessions SET alert_type = 'Logged'")
        connection.commit()
        (sample,) = read_dataset(str(dataset / "evil.db")).samples
    assert sample.category == "Logged"


# Results of other tools whose parts are anything: each is read, or refused in a sentence.

ODD: tuple[Any, ...] = (
    *(None, [], {}, "", 0, -1, 1e308, float("nan"), 10**400, True),
    *("nul \x00", "half a \ud800", [[1]], {"a": {"b": [1]}}, "1e999"),
)


def _paths(node: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    parts = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for name, part in parts:
        yield (*before, name)
        yield from _paths(part, (*before, name))


def _changed(document: Any) -> Iterator[Any]:
    for *to, last in _paths(document):
        for odd in ODD:
            changed = copy.deepcopy(document)
            place = changed
            for name in to:
                place = place[name]
            place[last] = odd
            yield changed


def _is_read(file: Path) -> bool:
    """Read a file; false where it is refused. Any other error fails the test."""
    try:
        answers, _ = merge(read_tool_results([file]))
        return bool(list(recorded("hostile", answers)))
    except EvalakeError:
        return False


@pytest.mark.parametrize(
    "document",
    [{**header(), "samples": [sample(1)]}, promptfoo_results([promptfoo_row(0, 0, True)], successes=1)],
    ids=["inspect", "promptfoo"],
)
def test_a_document_with_an_odd_part_is_read_or_refused(tmp_path: Path, document: Any) -> None:
    outcomes = set()
    for changed in _changed(document):
        (tmp_path / "x.json").write_text(json.dumps(changed))
        outcomes.add(_is_read(tmp_path / "x.json"))
    assert outcomes == {True, False}


def test_samples_of_lm_eval_with_an_odd_part_are_read_or_refused(tmp_path: Path) -> None:
    (tmp_path / "results_sums.json").write_text(json.dumps(lm_eval_results()))
    outcomes = set()
    for changed in _changed(json.loads(lm_eval_line(0, 1.0))):
        (tmp_path / "samples_sums.jsonl").write_text(json.dumps(changed))
        outcomes.add(_is_read(tmp_path / "samples_sums.jsonl"))
    assert outcomes == {True, False}


def test_results_of_lm_eval_with_an_odd_part_are_read_or_refused(tmp_path: Path) -> None:
    (tmp_path / "samples_sums.jsonl").write_text(lm_eval_line(0, 1.0))
    outcomes = set()
    for changed in _changed(lm_eval_results(exact_match__none=1.0)):
        (tmp_path / "results_sums.json").write_text(json.dumps(changed))
        outcomes.add(_is_read(tmp_path / "samples_sums.jsonl"))
    assert outcomes == {True, False}


def test_a_document_that_is_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    text = json.dumps({**header(), "samples": [sample(1, store="DEEP")]})
    (tmp_path / "x.json").write_text(text.replace('"DEEP"', "[" * 900 + "]" * 900))
    with pytest.raises(EvalakeError, match=r"x\.json is not as its tool writes it"):
        read_tool_results([tmp_path / "x.json"])
