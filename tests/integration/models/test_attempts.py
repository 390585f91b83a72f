"""What a provider does wrong, over real HTTP through LiteLLM: what it becomes, and how often it is asked again."""

import pytest

from evalake.models.client import Client
from evalake.models.request import Failure, Reply
from tests.integration.models.support import PROVIDERS, QUICK, answer, answers, configuration, request
from tests.servers.model_server import ModelServer

RETRIED = {
    "rate_limit": "rate_limit",
    "server_error": "server",
    "drop": "connection",
    "truncated": "connection",
    "hang": "timeout",
    "slow_drip": "timeout",
    "empty_body": "malformed_response",
    "html": "malformed_response",
    "garbage": "malformed_response",
    "wrong_json": "malformed_response",
    "json_array": "malformed_response",
    "deep_json": "malformed_response",
    "empty_choices": "malformed_response",
    "null_choices": "malformed_response",
    "no_message": "malformed_response",
    "message_text": "malformed_response",
    "content_object": "malformed_response",
}
SLOW = ("hang", "slow_drip")


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(("fault", "kind"), RETRIED.items())
def test_what_may_pass_is_tried_again_and_then_given_up(
    model_server: ModelServer, provider: str, fault: str, kind: str
) -> None:
    model_server.rule(contains="for ever", faults=[{"kind": fault, "times": 0}])
    limits = configuration(model_server, attempts=3, timeout_seconds=0.2 if fault in SLOW else 20)
    with Client(limits, backoff_seconds=QUICK) as client:
        outcome = answer(client, request("for ever", f"{provider}/m"))
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.attempts) == (kind, 3)
    assert outcome.message
    assert "Traceback" not in outcome.message
    assert len(model_server.requests("for ever")) == 3


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("fault", RETRIED)
def test_what_passes_ends_in_a_reply(model_server: ModelServer, provider: str, fault: str) -> None:
    model_server.rule(contains="twice", reply="at last", faults=[{"kind": fault, "times": 2}])
    limits = configuration(model_server, attempts=3, timeout_seconds=0.2 if fault in SLOW else 20)
    with Client(limits, backoff_seconds=QUICK) as client:
        answer(client, request("first", f"{provider}/m"))
        outcome = answer(client, request("twice", f"{provider}/m"))
    assert isinstance(outcome, Reply), outcome
    assert (outcome.text, outcome.attempts) == ("at last", 3)
    assert len(model_server.requests("twice")) == 3


def test_a_reply_that_is_not_utf_8_is_one_or_is_malformed(model_server: ModelServer) -> None:
    model_server.rule(faults=[{"kind": "invalid_utf8", "times": 0}])
    with Client(configuration(model_server, attempts=1), backoff_seconds=QUICK) as client:
        outcome = answer(client, request("odd", f"{PROVIDERS[0]}/m"))
    assert isinstance(outcome, Failure)
    assert outcome.kind == "malformed_response"


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_request_reaches_the_provider_whole(model_server: ModelServer, provider: str) -> None:
    with Client(configuration(model_server), backoff_seconds=QUICK) as client:
        answer(client, request("ünï", f"{provider}/m", temperature=0.25, max_tokens=7, seed=3))
    body = model_server.seen[0].body
    assert body["messages"] == [{"role": "user", "content": "ünï"}]
    assert (body["model"], body["temperature"], body["max_tokens"], body["seed"]) == ("m", 0.25, 7, 3)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_retry_after_is_honoured(model_server: ModelServer, provider: str) -> None:
    model_server.rule(faults=[{"kind": "rate_limit", "retry_after": "0.3", "times": 2}])
    with Client(configuration(model_server, attempts=3), backoff_seconds=QUICK) as client:
        assert isinstance(answer(client, request("wait", f"{provider}/m")), Reply)
    first, second, third = model_server.seen
    assert first.ended is not None
    assert second.ended is not None
    assert second.started - first.ended >= 0.3
    assert third.started - second.ended >= 0.3


def test_retry_after_has_a_longest_pause(model_server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalake.models.attempts.LONGEST_RETRY_AFTER_SECONDS", 0.01)
    model_server.rule(faults=[{"kind": "rate_limit", "retry_after": "60", "times": 1}])
    with Client(configuration(model_server), backoff_seconds=QUICK) as client:
        assert isinstance(answer(client, request("in a minute")), Reply)
    first, second = model_server.seen
    assert first.ended is not None
    assert second.started - first.ended < 60


def test_a_refused_key_stops_that_model_and_no_other(model_server: ModelServer) -> None:
    model_server.rule(model="locked", faults=[{"kind": "unauthorized", "times": 0}])
    models = ("hosted_vllm/locked", "hosted_vllm/open")
    with Client(configuration(model_server, *models), backoff_seconds=QUICK) as client:
        first = answer(client, request("1", "hosted_vllm/locked"))
        later = answer(client, request("2", "hosted_vllm/locked"))
        other = answer(client, request("3", "hosted_vllm/open"))
    assert isinstance(first, Failure)
    assert first.kind == "authentication"
    assert isinstance(later, Failure)
    assert (later.kind, later.attempts) == ("model_stopped", 0)
    assert "Incorrect API key provided" in later.message
    assert isinstance(other, Reply)
    assert len(model_server.requests(model="locked")) == 1


def test_calls_that_wait_for_their_turn_see_that_the_model_was_stopped(model_server: ModelServer) -> None:
    model_server.rule(faults=[{"kind": "unauthorized", "times": 0}])
    with Client(configuration(model_server, requests_per_minute=60), backoff_seconds=QUICK) as client:
        outcomes = answers(client, [request(f"{number}") for number in range(40)])
    kinds = [outcome.kind for outcome in outcomes.values() if isinstance(outcome, Failure)]
    assert len(kinds) == 40
    assert len(model_server.seen) == kinds.count("authentication") <= 3


def test_a_model_that_does_not_exist_is_stopped_too(model_server: ModelServer) -> None:
    model_server.rule(model="m", faults=[{"kind": "not_found", "times": 0}])
    with Client(configuration(model_server), backoff_seconds=QUICK) as client:
        kinds = [getattr(answer(client, request(text)), "kind", None) for text in "abc"]
    assert kinds == ["not_found", "model_stopped", "model_stopped"]
    assert len(model_server.seen) == 1
