"""What people wrote into a sheet or a form: rows of labels, and refusals that say what to write."""

from typing import Any

import pytest

from evalake.sdk import Labelling, Labels, Question, Refusal, Stage
from evalake.sdk.sheets import read_labels
from tests.unit.sdk.quiz import LABELLING, WHEN, results, sheet

LINE: dict[str, Any] = next(line for line in sheet(results(1, models=1), 1) if line["fill_in"] == "p")


def read(line: dict[str, Any] | str, annotator: str = "ann") -> Labels:
    return read_labels(LABELLING, [(7, line)], annotator, WHEN)


def test_an_answer_is_a_label_with_what_it_is_about_and_who_gave_it() -> None:
    (row,) = read(LINE | {"p": "12,5", "note": " good ", "annotator": "bob"}).rows
    assert (row["question"], row["score"], row["answer"], row["note"]) == ("points", 12.5, None, "good")
    assert (row["annotator"], row["suite"], row["model"], row["labelled_at"]) == ("bob", "quiz", "m0", WHEN)
    (former,) = read(LINE | {"p": 1, "labeller": "eve"}).rows
    assert former["annotator"] == "eve"


@pytest.mark.parametrize("word", ["yes", "Yes ", "TRUE", "1", True])
def test_yes_may_be_written_in_several_ways(word: Any) -> None:
    (row,) = read(LINE | {"true": word}).rows
    assert (row["question"], row["answer"]) == ("true", "yes")


@pytest.mark.parametrize("nothing", [None, "", "  "])
def test_a_line_that_nobody_filled_in_is_counted(nothing: Any) -> None:
    labels = read(LINE | {"p": nothing, "note": "only a note"})
    assert (labels.rows, labels.refused, labels.empty) == ([], [], 1)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"p": "21"}, "p is '21': write a number from 0 to 20"),
        ({"p": "many"}, "p is 'many': write a number from 0 to 20"),
        ({"p": True}, "p is True: write a number from 0 to 20"),
        ({"p": "nan"}, "p is 'nan': write a number from 0 to 20"),
        ({"true": "perhaps"}, "true is 'perhaps': write yes or no"),
        ({"p": 1, "note": "a\x00"}, "note is not text that can be stored"),
        ({"p": 1, "note": 3}, "note is not text that can be stored"),
        ({"p": 1, "sample_hash": ""}, "sample_hash is missing: keep the columns of the sheet as they were exported"),
        ({"p": 1, "replicate": "x"}, "replicate is 'x': keep it as it was exported"),
        ({"p": 1, "inclusion_probability": 2}, "inclusion_probability is 2: write a number from 0 to 1"),
    ],
)
def test_a_bad_line_is_refused_with_its_number_and_what_to_write(change: dict[str, Any], reason: str) -> None:
    labels = read(LINE | change)
    assert labels.rows == []
    assert labels.refused == [Refusal("line 7", reason)]


def test_a_word_is_one_of_those_to_choose_from() -> None:
    choice = Labelling("quiz", (Stage((Question("kind", "Which?", ("GOOD", "BAD")),), {}),))
    (row,) = read_labels(choice, [(1, LINE | {"kind": "good"})], "ann", WHEN).rows
    assert row["answer"] == "GOOD"
    (refused,) = read_labels(choice, [(1, LINE | {"kind": "so so"})], "ann", WHEN).refused
    assert refused.reason == "kind is 'so so': write one of GOOD, BAD"
