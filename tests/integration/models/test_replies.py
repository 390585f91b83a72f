"""Replies: odd ones, failures inside them, and what they consist of."""

import json
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from evalake.core.configuration import Configuration, Limits, ModelOptions
from evalake.core.redaction import KnownKeys, redact
from evalake.models.attempts import Outcome, WithoutSlot
from evalake.models.client import Client
from evalake.models.failures import AttemptFailed, require_no_failure, retry_after_seconds
from evalake.models.request import Failure, Reply
from tests.integration.models.support import PROVIDERS, QUICK, answer, answers, configuration, request
from tests.servers.model_server import ModelServer

# What is made of an answer: odd ones are replies, and no key of ours is in any.


def with_a_secret(server: ModelServer, provider: str = "hosted_vllm") -> Configuration:
    options = ModelOptions(api_base=server.api_base)
    return Configuration(models={f"{provider}/m": options}, providers={provider: NAMED})


KEY = "kept-in-a-block-3141592653"

NAMED = Limits(api_key_secret="the-block")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_an_odd_reply_is_still_a_reply(model_server: ModelServer, provider: str) -> None:
    model_server.rule(contains="nothing", faults=[{"kind": "null_content", "times": 0}])
    model_server.rule(contains="filtered", faults=[{"kind": "content_filter", "times": 0}])
    model_server.rule(contains="refused", reply=None, message={"refusal": "I cannot help with that."})
    model_server.rule(contains="cut", reply='{"action": "BLO', finish_reason="length")
    model_server.rule(contains="thought", reply="42", message={"reasoning_content": "let me think"})
    model_server.rule(contains="surrogate", reply="half a \ud83d character \x00")
    with Client(configuration(model_server), backoff_seconds=QUICK) as client:

        def reply(text: str) -> Reply:
            outcome = answer(client, request(text, f"{provider}/m"))
            assert isinstance(outcome, Reply), outcome
            return outcome

        assert (reply("nothing").text, reply("nothing").finish_reason) == (None, "stop")
        assert (reply("filtered").text, reply("filtered").finish_reason) == (None, "content_filter")
        assert (reply("refused").text, reply("refused").refusal) == (None, "I cannot help with that.")
        assert (reply("cut").text, reply("cut").finish_reason) == ('{"action": "BLO', "length")
        assert (reply("thought").text, reply("thought").reasoning) == ("42", "let me think")
        assert reply("surrogate").text == "half a ? character \x00"
        plain = reply("plain")
        assert (plain.input_tokens, plain.output_tokens, plain.model_reported) == (20, 5, "m")
        assert (plain.cached_input_tokens, plain.reasoning_tokens, plain.cost_usd) == (None, None, None)
        assert None not in (plain.latency_ms, plain.connect_ms, plain.first_byte_ms)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_keys_that_a_model_echoes_are_not_in_its_reply(
    model_server: ModelServer, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    monkeypatch.setenv("SOMEONES_API_KEY", "of-somebody-else-27182")
    model_server.rule(reply=f"I was called with {KEY}, and know of-somebody-else-27182", finish_reason="stop")
    with Client(with_a_secret(model_server, provider), QUICK, lambda _: KEY) as client:
        reply = answer(client, request("x", f"{provider}/m"))
    assert isinstance(reply, Reply)
    assert reply.text == "I was called with [redacted], and know [redacted]"


def test_a_key_is_found_however_json_spells_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOMEONES_API_KEY", KEY)
    escaped = "".join(f"\\u{ord(c):04X}" for c in KEY)
    mixed = KEY[:5] + f"\\u{ord(KEY[5]):04x}" + KEY[6:]
    keys = KnownKeys()
    for spelled in (escaped, mixed):
        assert json.loads(f'"{spelled}"') == KEY
        assert keys.redact(f'{{"reason": "{spelled}"}}') == '{"reason": "[redacted]"}'
    assert keys.redact('{"reason": "\\u0041 b"}') == '{"reason": "\\u0041 b"}'


def test_what_only_looks_like_a_key_is_a_models_answer(model_server: ModelServer) -> None:
    said = "curl -H 'Authorization: Bearer abcdefgh12345' leaks sk-abcdefgh12345678 and AKIAIOSFODNN7EXAMPLE"
    model_server.rule(reply=said)
    with Client(with_a_secret(model_server), read_secret=lambda _: KEY) as client:
        outcomes = answers(client, [request("x")])
    assert [outcome.text for outcome in outcomes.values() if isinstance(outcome, Reply)] == [said]
    assert redact(said) != said == KnownKeys().redact(said)


def test_no_password_of_something_else_distorts_a_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSTGRES_PASSWORD", "postgres")
    assert KnownKeys().redact("connect to postgres") == "connect to postgres"
    assert redact("connect to postgres") == "connect to [redacted]"


# What an upstream says went wrong inside an answer of status 200 is a failure with its kind and its words.

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


FORMS: Mapping[str, tuple[Any, str]] = {
    "choice with error": (body(choice(finish_reason="error", error={"message": "timed out", "code": 504})), "server"),
    "choice that says error": (body(choice(finish_reason="error")), "server"),
    "network error": (body(choice(finish_reason="network_error")), "server"),
    "rate": ({"id": None, "choices": None, "error": {"message": "not now", "code": 429}}, "rate_limit"),
    "rate as text": ({"error": {"message": "not now", "code": "429"}}, "rate_limit"),
    "text": ({"error": "not now"}, "server"),
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
    for said in (FORMS["choice with error"][0], {"error": {"message": "not now", "type": "overloaded_error"}}):
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


# What went wrong is told apart by status and words, and how long to wait is read from what the provider says.

FINAL = {
    "unauthorized": "authentication",
    "bad_request": "bad_request",
    "context_length": "context_length",
    "no_credit": "authentication",  # which no pause changes
    "payment": "authentication",
}


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(("fault", "kind"), FINAL.items())
def test_what_will_not_change_is_asked_once(model_server: ModelServer, provider: str, fault: str, kind: str) -> None:
    model_server.rule(faults=[{"kind": fault, "times": 0}])
    with Client(configuration(model_server, attempts=5), backoff_seconds=QUICK) as client:
        outcome = answer(client, request("once", f"{provider}/m"))
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.attempts) == (kind, 1)
    assert len(model_server.seen) == 1


FILTERED = (
    {"kind": "content_policy"},
    {"kind": "content_filter_code"},
    {"kind": "bad_request", "message": "Output blocked by content filtering policy"},
    {"kind": "bad_request", "message": "The response was filtered due to Azure OpenAI's content management policy"},
    {"kind": "bad_request", "message": "Content Exists Risk"},
    {"kind": "forbidden", "message": "This model requires moderation and your input was flagged"},
)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("fault", FILTERED, ids=str)
def test_a_filters_refusal_is_a_reply_that_was_filtered(
    model_server: ModelServer, provider: str, fault: dict[str, str]
) -> None:
    model_server.rule(faults=[{**fault, "times": 0}])
    with Client(configuration(model_server, attempts=5), backoff_seconds=QUICK) as client:
        outcome = answer(client, request("once", f"{provider}/m"))
    assert isinstance(outcome, Reply)
    assert (outcome.text, outcome.finish_reason, outcome.attempts) == (None, "content_filter", 1)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("bad_request", "Unrecognized request argument supplied: content_filter"),
        ("bad_request", "The content policy setting is not available for this deployment"),
        ("forbidden", "Your account was blocked for violating our usage policies"),
        ("server_error", "The content filter refused to start"),
    ],
)
def test_an_error_that_speaks_of_a_filter_is_none(model_server: ModelServer, fault: str, message: str) -> None:
    model_server.rule(faults=[{"kind": fault, "message": message, "times": 0}])
    with Client(configuration(model_server, attempts=1), backoff_seconds=QUICK) as client:
        assert isinstance(answer(client, request("once")), Failure)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    ("status", "kind", "attempts"),
    [(408, "timeout", 2), (422, "bad_request", 1), (503, "server", 2), (529, "server", 2), (403, "authentication", 1)],
)
def test_the_status_tells_the_kind(
    model_server: ModelServer, provider: str, status: int, kind: str, attempts: int
) -> None:
    model_server.rule(faults=[{"kind": "server_error", "status": status, "message": "too much " * 1000, "times": 0}])
    with Client(configuration(model_server, attempts=2), backoff_seconds=QUICK) as client:
        outcome = answer(client, request("x", f"{provider}/m"))
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.attempts) == (kind, attempts)
    assert outcome.message.startswith(f"HTTP {status}: too much too much")
    assert len(outcome.message) <= 500


@pytest.fixture
def far_from_greenwich(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The clocks of this process are Tokyo's."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("far_from_greenwich")
def test_retry_after_is_read_as_seconds_or_date() -> None:
    now = datetime(2025, 3, 1, 12, 0, tzinfo=UTC)
    assert retry_after_seconds("7") == 7.0
    assert retry_after_seconds("0.5") == 0.5
    assert retry_after_seconds(format_datetime(now + timedelta(seconds=90), usegmt=True), now) == 90.0
    assert retry_after_seconds("Sat, 01 Mar 2025 12:01:30 -0000", now) == 90.0  # no zone stated: Greenwich's
    assert retry_after_seconds("Sat, 01 Mar 2025 13:01:30 +0100", now) == 90.0
    assert retry_after_seconds(format_datetime(now - timedelta(hours=1), usegmt=True), now) == 0.0
    assert retry_after_seconds("-3") == 0.0
    endless = f"Mon, 01 Jan {'9' * 20} 00:00:00 GMT"
    assert [retry_after_seconds(garbage) for garbage in ("", "soon", "nan", "Mon, 99 Foo 2025", endless)] == [None] * 5
    assert retry_after_seconds(None) is None


# What is asked before each attempt of a call, such as a run's ceiling.


def test_an_attempt_that_is_not_admitted_is_not_made_and_later_ones_are_asked_about(model_server: ModelServer) -> None:
    model_server.rule(faults=[{"kind": "server_error", "times": 1}])
    asked: list[float] = []

    async def once(failed_cost_usd: float, without_slot: WithoutSlot) -> None:
        asked.append(failed_cost_usd)
        if len(asked) > 1:
            raise AttemptFailed("budget", "nothing is left")

    with Client(configuration(model_server), backoff_seconds=QUICK) as client:
        (outcome,) = client.run([client.call(request("dear"), 0, once)])
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.message, outcome.attempts) == ("budget", "nothing is left", 1)
    assert len(model_server.seen) == 1
