"""The object that a reply is about is found wherever the reply puts it, in bounded time."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.solidity_audit.replies.judgement import Asked, read_judgement
from suites.solidity_audit.replies.reply_json import LONGEST_REPLY, MOST_ATTEMPTS, find_object
from tests.suites.solidity_audit.judgements import GOOD
from tests.suites.solidity_audit.support import finding

ASKED = Asked(target=True, verdict=True)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(GOOD),
        f"Here it is:\n```json\n{json.dumps(GOOD, indent=2)}\n```\nDone.",
        f'<think>{{"findings": []}} is one way</think>{json.dumps(GOOD)}',
        f"a chat template's thinking</think>{json.dumps(GOOD)}",
        json.dumps({"note": "first"}) + json.dumps(GOOD),
    ],
)
def test_a_judgement_is_found_wherever_the_reply_puts_it(text: str) -> None:
    reading = read_judgement(text, ASKED)
    assert reading.flaws == ()
    assert reading.judgement is not None
    assert reading.judgement.model_dump(exclude_none=True)["findings"] == [finding()]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"note": 1} {"verdict": 2} {"verdict": 3}', {"verdict": 2}),
        ('{"about": {"verdict": 1}}', None),
        ('<think>{"verdict": 1}</think>{"verdict": 2}', {"verdict": 2}),
        ('{"verdict": NaN}', None),
        ('{"verdict": Infinity} {"verdict": 1}', {"verdict": 1}),
        ('{"verdict": 1', None),
        ("[1, 2]", None),
        ("", None),
        ("{" * (MOST_ATTEMPTS - 1) + '{"verdict": 1}', {"verdict": 1}),
        ("{" * MOST_ATTEMPTS + '{"verdict": 1}', None),
        (" " * LONGEST_REPLY + '{"verdict": 1}', None),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_the_first_whole_object_with_a_wanted_key_is_taken(text: str, value: object) -> None:
    assert find_object(text, ("verdict", "findings")) == value


@given(st.text(alphabet=st.sampled_from('{}[]":, verdict1NaN'), max_size=100))
def test_any_reply_is_looked_through(text: str) -> None:
    found = find_object(text, ("verdict",))
    assert found is None or "verdict" in found
