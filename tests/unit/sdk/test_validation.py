"""What is wrong with JSON from outside is told in few words, whatever it is."""

from typing import Any

import pytest

from evalake.core.errors import SourceError
from evalake.sdk.results import MOST_FLAWS, ModelName, Name, Strict, read_line


class Part(Strict):
    share: float


class Whole(Strict):
    name: Name
    parts: tuple[Part, ...] = ()


def told(line: dict[str, Any]) -> str:
    with pytest.raises(SourceError) as caught:
        read_line(Whole, line)
    return str(caught.value)


def test_a_good_line_is_read_without_what_was_expected_of_it() -> None:
    assert read_line(Whole, {"name": "a", "parts": ({"share": 1},), "expected_share": 2}) == Whole(
        name="a", parts=(Part(share=1.0),)
    )


def test_unknown_fields_come_first_each_by_its_place() -> None:
    assert told({"parts": ({"share": "1", "x": 2},)}).startswith("unknown field 'parts.0.x'; name: Field required; ")


@pytest.mark.parametrize("name", ["", " \n", "a\x00", "\ud800", None, 1])
def test_a_name_is_text_that_can_be_stored(name: Any) -> None:
    assert told({"name": name}).startswith("name: ")


@pytest.mark.parametrize("model", ["a" * 241, "/" * 81, "\U0001f40d" * 21])
def test_a_model_has_a_name_that_a_folder_can_have(model: str) -> None:
    class Line(Strict):
        model: ModelName

    assert read_line(Line, {"model": model[:-1]}).model == model[:-1]
    with pytest.raises(SourceError, match="model: too long"):
        read_line(Line, {"model": model})


@pytest.mark.parametrize("share", [float("nan"), float("inf"), "1", True, None])
def test_a_number_is_a_number(share: Any) -> None:
    assert told({"name": "a", "parts": ({"share": share},)}).startswith("parts.0.share: ")


def test_what_is_told_is_bounded() -> None:
    assert told({"name": "a", "parts": ({},) * 1000}).count(";") == MOST_FLAWS - 1
    assert len(told({"name": "a", "x" * 100_000: 1})) < 200
