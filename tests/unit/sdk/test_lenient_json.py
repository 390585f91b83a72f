"""The object that a reply is about is found wherever the reply puts it, also broken, in bounded time."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evalake.sdk import lenient_json

KEYS = ("verdict", "findings")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"note": 1} {"verdict": 2} {"verdict": 3}', {"verdict": 2}),
        ('{"about": {"verdict": 1}}', {"verdict": 1}),
        ('{"about": [{"verdict": 1}]}', {"verdict": 1}),
        ('{"a": {"b": {"c": {"verdict": 1}}}}', None),
        ('<think>{"verdict": 1}</think>{"verdict": 2}', {"verdict": 2}),
        ('{"verdict": NaN}', {"verdict": "NaN"}),
        ('{"verdict": 1', None),
        ('{"verdict": [1}', None),
        ("[1, 2]", None),
        ("", None),
        ("{" * 1000 + '{"verdict": 1}', {"verdict": 1}),
        ('{"' * lenient_json.MOST_ATTEMPTS + '{"verdict": 1}', None),
        (" " * lenient_json.LONGEST_REPLY + '{"verdict": 1}', None),
        ("function f() { x = 1; }" * 100 + '{"verdict": 1,}', {"verdict": 1}),
        ('{"verdict": ' + "[" * lenient_json.DEEPEST + "]" * lenient_json.DEEPEST + ",}", None),
        ('{"verdict": 1,' + " " * lenient_json.LONGEST_REPAIRED + "}", None),
        ('{"verdict": ꙮ,}', None),
        ('{"verdict": , "note": 1}', None),
        ('{"verdict": "a" "b", "note": 1}', None),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_the_first_whole_object_with_a_wanted_key_is_taken(text: str, value: object) -> None:
    found = lenient_json.find_object(text, KEYS)
    assert (found and found.value) == value


@pytest.mark.parametrize(
    "text",
    [
        '{"verdict": 1, "verdict": 2}',
        '{"verdict": 1, "verdict": 2,}',
        "{'verdict': 1, 'verdict': 2}",
        "{verdict: 1, verdict: 2}",
        '{"verdict": 1, "Verdict": 2}',
        '{"about": {"verdict": 1, "verdict": 2},}',
    ],
)
def test_a_key_that_stands_twice_makes_two_objects(text: str) -> None:
    assert sorted(each.value["verdict"] for each in lenient_json.find_all(text, KEYS)[0]) == [1, 2]


def test_objects_that_say_the_same_count_once() -> None:
    assert len(lenient_json.find_all('{"verdict": 1} {"verdict": 1,} {"Verdict": 1}', KEYS)[0]) == 1


@pytest.mark.parametrize("key", ["finding_id", "findingId", "Finding ID", "FINDING-ID", " finding_id ", "FindingID"])
def test_a_name_is_one_however_it_is_spelled(key: str) -> None:
    assert lenient_json.name_of(key) == "finding_id"


def test_a_key_without_letters_stays_itself() -> None:
    assert lenient_json.name_of("é") == "é"


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.text(st.characters(blacklist_categories=["Cs", "Cc"]), max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=9,
)


@given(plain)
@example("\\\xa0")  # a backslash before an escape, which json-repair reads as one escape less
def test_a_comma_too_many_changes_nothing(value: Any) -> None:
    text = json.dumps({"verdict": value})
    ((whole,), _) = lenient_json.find_all(text, KEYS)
    assert [each.value for each in lenient_json.find_all(text[:-1] + ",}", KEYS)[0]] == [whole.value]


@given(st.text(alphabet=st.sampled_from("{}[]\":, '/*#\n\\.verdict1NaN"), max_size=100))
def test_any_reply_is_looked_through(text: str) -> None:
    assert all("verdict" in found.value for found in lenient_json.find_all(text, ("verdict",))[0])
