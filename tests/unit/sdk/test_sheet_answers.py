"""What people wrote into a sheet or a form: rows of labels, and refusals that say what to write."""

from typing import Annotated, Any, Literal

import pytest
from pydantic import Field, ValidationError

from evalake.sdk import Labelling, Labels, Question, Refusal, Stage
from evalake.sdk.sheets import Questions, questions_about, read_labels
from tests.unit.sdk.quiz import LABELLING, WHEN, results, sheet


def test_a_form_asks_what_the_stage_asks() -> None:
    points, true = (questions_about(LABELLING, line) for line in ({"fill_in": "p"}, {"fill_in": "true"}))
    assert list(points.model_fields) == ["p", "note"]
    assert points.model_validate({"p": 20})
    with pytest.raises(ValidationError):
        points.model_validate({"p": 20.5})
    assert list(true.model_fields) == ["true", "note"]
    with pytest.raises(ValidationError):
        true.model_validate({"true": "perhaps"})


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


def test_a_line_that_could_not_be_read_is_refused_with_the_reason() -> None:
    assert read("it is not JSON").refused == [Refusal("line 7", "it is not JSON")]


def test_of_two_answers_to_one_question_the_last_counts() -> None:
    lines = [(n, LINE | {"p": n}) for n in (1, 2)]
    (row,) = read_labels(LABELLING, lines, "ann", WHEN).rows
    assert row["score"] == 2


def test_a_word_is_one_of_those_to_choose_from() -> None:
    choice = Labelling("quiz", (Stage((Question("kind", "Which?", ("GOOD", "BAD")),), {}),))
    (row,) = read_labels(choice, [(1, LINE | {"kind": "good"})], "ann", WHEN).rows
    assert row["answer"] == "GOOD"
    (refused,) = read_labels(choice, [(1, LINE | {"kind": "so so"})], "ann", WHEN).refused
    assert refused.reason == "kind is 'so so': write one of GOOD, BAD"


class Asked(Questions):
    """Two questions and a list."""

    word: Literal["yes", "no"] | None = Field(None, title="Is it?")
    share: Annotated[float, Field(ge=0, le=1)] | None = None
    either: int | str | None = None


def test_every_question_may_be_left_empty() -> None:
    assert Asked().model_dump() == {"word": None, "share": None, "either": None}


def test_a_field_is_described_as_what_is_asked_for_and_not_as_that_or_nothing() -> None:
    properties = Asked.model_json_schema()["properties"]
    assert properties["word"] == {"title": "Is it?", "enum": ["yes", "no"], "type": "string"}
    assert properties["share"] == {"title": "Share", "minimum": 0, "maximum": 1, "type": "number"}
    assert "anyOf" in properties["either"], "where there is a choice of kinds, it stays one"


@pytest.mark.parametrize("answers", [{"word": "perhaps"}, {"share": 1.5}, {"other": 1}])
def test_what_is_not_asked_is_not_taken(answers: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Asked.model_validate(answers)
