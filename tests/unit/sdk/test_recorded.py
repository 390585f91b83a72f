"""Recorded results as any suite imports them: what a line becomes, and how a bad one is named."""

from typing import Any

import pytest

from evalake.core.errors import SourceError
from evalake.models.request import Reply
from evalake.sdk.results import read_recorded

LINE: dict[str, Any] = {
    "dataset": "d",
    "sample_id": "s1",
    "input": "What is 2 + 2?",
    "target": {"answer": 4},
    "label": "easy",
    "model": "a/model",
    "replicate": 1,
    "replies": [{"text": "4", "finish_reason": "stop", "input_tokens": 7, "latency_ms": 1.5}],
}
JUDGED = {**LINE, "judge": "a/judge", "replies": [{"text": "4"}, {"text": "right"}]}


def read(line: dict[str, Any], *, is_judged: bool = False) -> Any:
    return read_recorded("quiz", line, is_judged=is_judged)


def test_a_line_is_a_sample_who_was_asked_and_what_was_answered() -> None:
    recorded = read(LINE)
    sample = recorded.item.sample
    assert (sample.suite, sample.dataset, sample.sample_id, sample.input) == ("quiz", "d", "s1", "What is 2 + 2?")
    assert (sample.target, sample.label, sample.category) == ('{"answer":4}', "easy", None)
    assert (recorded.item.model, recorded.item.judge, recorded.item.replicate) == ("a/model", None, 1)
    assert recorded.replies == (Reply("4", "stop", input_tokens=7, latency_ms=1.5),)
    assert read(LINE | {"expected_answer": 4}) == recorded


def test_what_was_asked_has_a_hash_of_its_own_for_model_and_judge() -> None:
    recorded = read(JUDGED, is_judged=True)
    assert len({*recorded.prompt_hashes}) == 2
    other = read(JUDGED | {"judge": "another/judge"}, is_judged=True)
    assert other.prompt_hashes[0] == recorded.prompt_hashes[0], "the model's answer is the same, whoever judged it"
    assert other.prompt_hashes[1] != recorded.prompt_hashes[1]
    assert read(JUDGED | {"replicate": 2}, is_judged=True).prompt_hashes == recorded.prompt_hashes


def test_text_that_no_table_can_hold_becomes_storable() -> None:
    (reply,) = read(LINE | {"replies": [{"text": "a\ud800"}]}).replies
    assert reply.text == "a?"
    assert read(LINE | {"target": ["a\ud800"]}).item.sample.target == '["a?"]'


@pytest.mark.parametrize(
    ("change", "is_judged", "message"),
    [
        ({"model": None}, False, "model: Input should be a valid string"),
        ({"input": " "}, False, "input: blank"),
        ({"colour": 1}, False, "unknown field 'colour'"),
        ({"replies": []}, False, "replies: List should have at least 1 item"),
        ({"replies": [{"text": "4", "latency_ms": -1}]}, False, "replies.0.latency_ms: "),
        ({"replies": [{}]}, False, "replies.0.text: Field required"),
        ({"replicate": -1}, False, "replicate: "),
        ({"target": float("nan")}, False, "holds a number that is not finite"),
        ({"judge": "a/judge"}, False, "judge: quiz is judged by rules, and has none"),
        ({}, True, "judge: quiz needs one"),
        ({"judge": "a/judge"}, True, "replies: the first is the model's, and the judge's are missing"),
    ],
)
def test_a_bad_line_is_refused_by_the_name_of_its_field(change: dict[str, Any], is_judged: bool, message: str) -> None:
    with pytest.raises(SourceError) as caught:
        read(LINE | change, is_judged=is_judged)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
