"""Calls that go LiteLLM's own way: what it answers is read, and what it says went wrong is told apart."""

import pytest

from evalake.models.client import Client
from evalake.models.direct import SWITCH
from evalake.models.request import Failure, Reply
from tests.integration.models.support import PROVIDERS, QUICK, answer, configuration, request
from tests.servers.model_server import ModelServer


@pytest.fixture(autouse=True)
def all_by_litellm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, "0")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_its_answer_is_a_reply_with_the_time_that_it_took(model_server: ModelServer, provider: str) -> None:
    model_server.rule(reply="so it is", latency=0.02)
    with Client(configuration(model_server), QUICK) as client:
        reply = answer(client, request("x", f"{provider}/m", temperature=0.5))
    assert isinstance(reply, Reply)
    assert (reply.text, reply.finish_reason, reply.input_tokens, reply.output_tokens) == ("so it is", "stop", 20, 5)
    assert reply.latency_ms is not None
    assert reply.latency_ms >= 20
    assert (reply.connect_ms, reply.first_byte_ms) == (None, None)  # which it does not tell
    assert model_server.seen[0].body["temperature"] == 0.5


@pytest.mark.parametrize("provider", PROVIDERS)
def test_it_tries_nothing_twice_by_itself(model_server: ModelServer, provider: str) -> None:
    model_server.rule(faults=[{"kind": "server_error", "times": 0}])
    with Client(configuration(model_server, attempts=2), QUICK) as client:
        outcome = answer(client, request("x", f"{provider}/m"))
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.attempts, len(model_server.seen)) == ("server", 2, 2)
