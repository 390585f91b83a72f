"""Calls that go LiteLLM's own way: what it answers is read, and what it says went wrong is told apart."""

import gc
from dataclasses import replace

import pytest
from aiohttp import ClientSession

from evalake.core.configuration import Configuration, ModelOptions
from evalake.models.client import Client
from evalake.models.direct import SWITCH
from evalake.models.request import Failure, Reply
from tests.integration.models.provider_answers import CASES
from tests.integration.models.support import PROVIDERS, QUICK, answer, configuration, request
from tests.servers.model_server import ModelServer
from tests.servers.recorder import recorder


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


def _open_sessions() -> set[int]:
    return {id(each) for each in gc.get_objects() if isinstance(each, ClientSession) and not each.closed}


def test_a_closed_client_leaves_no_connection_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """LiteLLM keeps one client for all streams of Claude, which the loop of a second client of ours would inherit."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a-key-of-nobody")
    case = CASES["anthropic"][0]
    before = _open_sessions()
    with recorder() as server:
        server.answer(case.stream(*case.pieces), headers={"Content-Type": "text/event-stream"})
        limits = Configuration(models={case.model: ModelOptions(api_base=server.address)})
        for _ in range(2):
            with Client(limits, QUICK) as client:
                assert isinstance(answer(client, replace(request("x", case.model), stream=True)), Reply)
    assert _open_sessions() <= before
