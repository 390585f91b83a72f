"""A suite's own tables of samples: which columns they take, what is left out, and what stands for a missing name."""

import json
from pathlib import Path
from typing import Any

import pytest

from evalake.core.errors import SourceError
from evalake.sdk import SampleTable

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
