"""What an upstream says went wrong inside an answer of status 200 is a failure with its kind and its words."""

from collections.abc import Mapping
from typing import Any

import pytest

from evalake.models.attempts import Outcome
from evalake.models.client import Client
from evalake.models.failures import AttemptFailed, require_no_failure
from evalake.models.request import Failure, Reply
from tests.integration.models.support import PROVIDERS, QUICK, answer, configuration, request
from tests.servers.model_server import ModelServer

SAID = '{"action": "BLOCK"}'


def choice(message: Mapping[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    return {
        "index": 0,
        "message": {"role": "assistant", "content": "", **(message or {})},
        "finish_reason": "stop",
        **fields,
    }


def body(*choices: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    base = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": list(choices)}
    return {**base, "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}, **fields}


def ask(server: ModelServer, provider: str, said: Any, attempts: int = 2) -> Outcome:
    server.rule(contains="asked", faults=[{"kind": "body", "body": said, "times": 0}])
    with Client(configuration(server, attempts=attempts), backoff_seconds=QUICK) as client:
        return answer(client, request("asked", f"{provider}/m"))


FAILED = {
    "choice with error": (body(choice(finish_reason="error", error={"message": "timed out", "code": 504})), "server"),
    "choice that says error": (body(choice(finish_reason="error")), "server"),
    "network error": (body(choice(finish_reason="network_error")), "server"),
    "rate": ({"id": None, "choices": None, "error": {"message": "not now", "code": 429}}, "rate_limit"),
    "rate as text": ({"error": {"message": "not now", "code": "429"}}, "rate_limit"),
    "broken": ({"error": {"message": "not now", "code": 502}}, "server"),
    "text": ({"error": "not now"}, "server"),
}


FORMS: Mapping[str, tuple[Any, str]] = {
    **FAILED,
    "aborted": (body(choice({"content": SAID}, finish_reason="abort")), "server"),
    "resources": (body(choice(finish_reason="insufficient_system_resource")), "server"),
    "cancelled": (body(choice(finish_reason="cancelled")), "server"),
    "of the provider behind a router": (body(choice(native_finish_reason="error")), "server"),
    "in the message": (body(choice({"error": {"message": "gone", "code": 502}})), "server"),
    "in the choice, as text": (body(choice(error="overloaded")), "server"),
    "a list of errors": ({"success": False, "errors": [{"code": 401, "message": "no"}]}, "authentication"),
    "an error in a list": ([{"error": {"code": 429, "message": "slow down"}}], "rate_limit"),
    "problem details": ({"status": 429, "title": "Too Many Requests"}, "rate_limit"),
    "code and message": ({"code": 50000, "message": "system busy", "data": None}, "server"),
    "a message alone": ({"message": "Unauthorized"}, "authentication"),
    "detail with a status": ({"detail": "no key", "status_code": 401}, "authentication"),
    "a class's name": ({"error": {"type": "RateLimitError", "message": "slow down"}}, "rate_limit"),
    "a filter": ({"error": {"code": 400, "message": "Output blocked by content filtering policy"}}, "content_policy"),
    "a name": ({"error": {"message": "not now", "type": "rate_limit_error"}}, "rate_limit"),
    "a filter's name": ({"error": {"code": "content_filter", "message": "no"}}, "content_policy"),
}


@pytest.mark.parametrize(("said", "kind"), FORMS.values(), ids=FORMS)
def test_every_form_of_a_failure_is_read(said: Any, kind: str) -> None:
    with pytest.raises(AttemptFailed) as failed:
        require_no_failure(said)
    assert failed.value.kind == kind


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_failure_inside_200_is_tried_again_and_given_up(model_server: ModelServer, provider: str) -> None:
    for said in (FAILED["choice with error"][0], {"error": {"message": "not now", "type": "overloaded_error"}}):
        failure = ask(model_server, provider, said)
        assert isinstance(failure, Failure)
        assert (failure.kind, failure.attempts) == ("server", 2)
        model_server.reset()


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("code", [401, "401", "invalid_api_key"])
def test_a_wrong_key_inside_200_stops_the_model(model_server: ModelServer, provider: str, code: object) -> None:
    failure = ask(model_server, provider, {"error": {"message": "no credentials", "code": code}})
    assert isinstance(failure, Failure)
    assert (failure.kind, failure.attempts) == ("authentication", 1)
    assert "no credentials" in failure.message


WORDS = {
    "router": ({"error": {"message": "refused", "code": 429, "metadata": {"raw": "too many requests"}}}, "too many"),
    "vllm": ({"object": "error", "message": "the engine died", "code": 500}, "the engine died"),
    "anthropic": ({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "Overloaded"),
    "fastapi": ({"detail": "worker lost"}, "worker lost"),
    "no choices": (body(), "the reply holds no choice"),
    "something else": ({"hello": "world"}, '{"hello": "world"}'),
}


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(("said", "words"), WORDS.values(), ids=WORDS)
def test_the_upstreams_own_words_are_shown(model_server: ModelServer, provider: str, said: Any, words: str) -> None:
    failure = ask(model_server, provider, said)
    assert isinstance(failure, Failure)
    assert words in failure.message
    assert "Exception" not in failure.message


def replied(server: ModelServer, provider: str, said: Any) -> Reply:
    outcome = ask(server, provider, said)
    assert isinstance(outcome, Reply), outcome
    return outcome


@pytest.mark.parametrize("provider", PROVIDERS)
def test_what_a_reply_consists_of_is_kept_apart(model_server: ModelServer, provider: str) -> None:
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "perhaps ALLOW"}]}
    parts = [thought, {"type": "text", "text": SAID[:5]}, {"type": "text", "text": SAID[5:]}]
    of_parts = replied(model_server, provider, body(choice({"content": parts})))
    assert (of_parts.text, of_parts.reasoning, of_parts.empty_kind) == (SAID, "perhaps ALLOW", None)
    tool = {"type": "tool_use", "id": "c1", "name": "verdict", "input": {}}
    nested = [{"type": "reasoning", "summary": [{"text": "hm"}]}, {"type": "text", "text": {"value": SAID}}]
    assert replied(model_server, provider, body(choice({"content": [tool]}))).empty_kind == "tool_call_only"
    assert replied(model_server, provider, body(choice({"content": nested}))).text == SAID
    for name in ("reasoning", "reasoning_content"):
        only_thought = replied(model_server, provider, body(choice({"content": None, name: "BLOCK it"})))
        assert (only_thought.text, only_thought.reasoning) == (None, "BLOCK it")
        assert only_thought.empty_kind == "reasoning_only"
    call = {"id": "c1", "type": "function", "function": {"name": "verdict", "arguments": SAID}}
    called = replied(model_server, provider, body(choice({"content": None, "tool_calls": [call]})))
    assert called.tool_calls is not None
    assert (called.empty_kind, '"verdict"' in called.tool_calls) == ("tool_call_only", True)
