"""JSON objects in a text: found whatever stands about them, in the order they begin, in time linear in its length."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalake.sdk.json_in_text import as_share, find_objects


def found(text: str, key: str = "a") -> list[tuple[str, tuple[str, ...]]]:
    return [(text[each.start : each.end], each.strings) for each in find_objects(text, key)]


@pytest.mark.parametrize(
    ("text", "objects"),
    [
        ("", []),
        ("no object", []),
        ('So: {"a": "x"}!', [('{"a": "x"}', ("x",))]),
        ('{"b": "x"}', []),
        ('{"a": 1}', []),
        ('{"a": "x", "a": "y"}', [('{"a": "x", "a": "y"}', ("x", "y"))]),
        ('{"b": [{"a": "x"}, {"a": "y"}]}', [('{"a": "x"}', ("x",)), ('{"a": "y"}', ("y",))]),
        ('{"a": "x", "b": {"a": "y"}}', [('{"a": "x", "b": {"a": "y"}}', ("x",)), ('{"a": "y"}', ("y",))]),
        ('{{"a": "x"}}', [('{{"a": "x"}}', ("x",))]),
        ('{"\\u0061": "\\u0078"}', [('{"\\u0061": "\\u0078"}', ("x",))]),
        ('{"b": "{\\"a\\": 1}"} {"a": "x"}', [('{"a": "x"}', ("x",))]),
        ('{"a": "x"', []),
        ('{"b": 1, {"a": "x"}', [('{"a": "x"}', ("x",))]),
        ('{"a": "x",}', []),
        ("{'a': 'x'}", []),
    ],
)
def test_well_formed_objects_are_found_and_nothing_else(text: str, objects: list[tuple[str, tuple[str, ...]]]) -> None:
    assert found(text) == objects


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(alphabet='a"\\{}[] \n', max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab{"), inner, max_size=3),
    max_leaves=8,
)


def strings_of(value: Any) -> list[tuple[str, ...]]:
    """What is to be found in a decoded value, by a walk of its own: outer objects before inner ones."""
    if isinstance(value, list):
        return [each for inner in value for each in strings_of(inner)]
    if not isinstance(value, dict):
        return []
    own = [(value["a"],)] if isinstance(value.get("a"), str) else []
    return own + [each for inner in value.values() for each in strings_of(inner)]


@given(st.lists(st.dictionaries(st.sampled_from("ab{"), VALUES, max_size=3), max_size=3))
def test_it_agrees_with_a_json_library(documents: list[dict[str, Any]]) -> None:
    text = " then ".join(map(json.dumps, documents))
    assert [strings for _, strings in found(text)] == [each for value in documents for each in strings_of(value)]


@given(st.lists(st.sampled_from(['{"a":"x"}', "{", "}", '"', "[", "]", ",", ":", "\\", "{{", "1"]), max_size=40))
def test_what_is_found_is_json_whatever_stands_about_it(pieces: list[str]) -> None:
    text = "".join(pieces)
    ends = 0
    for each in find_objects(text, "a"):
        part = text[each.start : each.end]
        if "{{" not in part:
            assert isinstance(json.loads(part), dict)
        assert each.strings
        ends = max(ends, each.end)
    assert ends <= len(text)


@pytest.mark.parametrize(
    ("value", "share"),
    [
        (0, 0.0),
        (1, 1.0),
        (0.25, 0.25),
        (True, None),
        ("0.5", None),
        ("50 %", None),
        ("1_0", None),
        (1.01, None),
        (float("nan"), None),
        (None, None),
    ],
)
def test_a_share_is_a_number_from_0_to_1(value: Any, share: float | None) -> None:
    assert as_share(value) == share
