"""People's answers: one row a question, and lakes of the first schema are brought to that."""

from evalake.contracts.tables.people import HUMAN_LABELS, answered
from tests.unit.contracts.tables.rows import SHA, broken_by

WORD = {"label_id": SHA, "annotator": "ann"}


def test_each_answer_is_a_row_of_its_own_in_words_or_as_a_score() -> None:
    rows = answered(WORD, {"right": True, "kind": "bonus", "points": 3, "share": 0.5, "open": None})
    assert [(row["question"], row["answer"], row["score"]) for row in rows] == [
        ("right", "yes", None),
        ("kind", "bonus", None),
        ("points", None, 3.0),
        ("share", None, 0.5),
    ]
    assert len({row["label_id"] for row in rows}) == 4
    assert {row["annotator"] for row in rows} == {"ann"}


def test_the_same_word_has_the_same_ids() -> None:
    first, second = (answered(WORD, {"right": value})[0]["label_id"] for value in (True, False))
    assert first == second  # so that a later answer takes the earlier one's place


def test_a_chance_of_zero_cannot_have_drawn_anything() -> None:
    assert broken_by(HUMAN_LABELS, inclusion_probability=None) == []
    assert broken_by(HUMAN_LABELS, inclusion_probability=0.0) == ["drawn_with_some_chance"]
    assert broken_by(HUMAN_LABELS, inclusion_probability=1.1) == ["inclusion_probability_is_share"]
