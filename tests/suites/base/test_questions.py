"""A form's questions: each may be left empty, is described as the thing itself, and nothing else is taken."""

from typing import Annotated, Literal

import pytest
from pydantic import Field, ValidationError

from suites.base.sheet_answers import Questions


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
