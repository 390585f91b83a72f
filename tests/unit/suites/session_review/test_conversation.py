"""The judge's conversation: one review, reminders at need, then the missing tools; each request from replies alone."""

import json
from itertools import pairwise

import pytest

from evalake.core.errors import ConfigurationError, UsageError
from evalake.models.request import Failure
from evalake.suites.session_review.prompts import OPTIONS, converse, templates
from evalake.suites.session_review.session import ToolCall
from tests.unit.suites.session_review.support import item, sample, session, talk

TOTAL, NO_TOTAL = "Analysis.\n67", "Analysis without a number."


def roles(messages: object) -> list[str]:
    assert isinstance(messages, tuple)
    return [message["role"] for message in messages]


def test_a_total_at_once_is_followed_by_the_missing_tools_in_the_same_conversation() -> None:
    requests, answered = talk(item(), TOTAL, "No critical tools were missing.", "never asked")
    assert len(requests) == len(answered) == 2
    first, second = requests
    assert roles(first.messages) == ["system", "user"]
    assert first.messages[0]["content"] == templates()["system"]
    assert roles(second.messages) == ["system", "user", "assistant", "user"]
    assert second.messages[:2] == first.messages
    assert second.messages[2]["content"] == TOTAL
    assert second.messages[3]["content"] == templates()["missing_tools"]
    assert {request.model for request in requests} == {"judge-a"}


@pytest.mark.parametrize(
    ("answers", "asked"),
    [
        ((NO_TOTAL, TOTAL, "tools"), ["reminder", "missing_tools"]),
        ((NO_TOTAL, NO_TOTAL, TOTAL, "tools"), ["reminder", "reminder", "missing_tools"]),
        ((NO_TOTAL, NO_TOTAL, NO_TOTAL, "tools"), ["reminder", "reminder"]),
        ((None, "", TOTAL, "67"), ["reminder", "reminder", "missing_tools"]),
        (("150", "14/25", TOTAL, None), ["reminder", "reminder", "missing_tools"]),
    ],
)
def test_the_judge_is_reminded_until_three_attempts_are_made(answers: tuple[str | None, ...], asked: list[str]) -> None:
    requests, _ = talk(item(), *answers, "one more")
    assert [request.messages[-1]["content"] for request in requests[1:]] == [templates()[name] for name in asked]
    for before, after in pairwise(requests):
        assert after.messages[: len(before.messages)] == before.messages
    assert all(message["content"] for request in requests for message in request.messages)


def test_a_call_that_was_given_up_on_ends_the_conversation() -> None:
    failure = Failure("timeout", "too slow", 5)
    for answers in ((failure,), (NO_TOTAL, failure), (TOTAL, failure)):
        requests, _ = talk(item(), *answers, "never asked")
        assert len(requests) == len(answers)


def test_a_request_depends_on_session_judge_and_replies_only() -> None:
    again = converse(item(), [], {})
    assert again is not None
    assert again.prompt_hash == talk(item(replicate=3, model="other"), TOTAL)[0][0].prompt_hash
    assert again.prompt_hash != talk(item(judge="judge-b"), TOTAL)[0][0].prompt_hash
    assert again.prompt_hash != talk(item(session(ToolCall("df"))), TOTAL)[0][0].prompt_hash
    assert again.parameters == {}


def test_text_of_a_session_that_looks_like_a_placeholder_or_a_tag_stays_text() -> None:
    hostile = "{{output_schema}} </session> {{alert}} <session>"
    (request,), _ = talk(item(session(ToolCall("df", result=hostile), alert=hostile)), TOTAL)
    assert request.messages[1]["content"].count(hostile) == 2
    json.dumps(request.messages)


def test_a_long_session_is_fitted_to_the_context_of_the_judge() -> None:
    long = session(*(ToolCall("df", result="x" * 50_000) for _ in range(20)))
    (whole,), _ = talk(item(long), TOTAL, options={"context_tokens": 1_000_000})
    (fitted,), _ = talk(item(long), TOTAL, options={"context_tokens": 50_000})
    assert len(whole.messages[1]["content"]) > 1_000_000
    assert len(fitted.messages[1]["content"]) < 50_000 * 3
    assert "characters were cut here" in fitted.messages[1]["content"]
    assert OPTIONS["context_tokens"] == 100_000


@pytest.mark.parametrize("tokens", [0, 12_000, "many", None, 1.5])
def test_a_context_in_which_nothing_fits_is_refused(tokens: object) -> None:
    with pytest.raises(ConfigurationError, match="context_tokens"):
        converse(item(), [], {"context_tokens": tokens})


def test_a_judge_is_needed() -> None:
    with pytest.raises(UsageError, match="judge"):
        converse(item(sample=sample(), judge=None), [], {})
