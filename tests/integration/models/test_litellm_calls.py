"""Calls that go LiteLLM's own way: what it answers is read, and what it says went wrong is told apart."""

import gc
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

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


def usage_of(**counts: Any) -> Mapping[str, Any]:
    """A usage block with other counts."""
    return {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120, **counts}


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")  # of OpenAI's library, which reads it first
@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        (usage_of(prompt_tokens=100.0, completion_tokens=20.5), (100, None, None)),
        (usage_of(completion_tokens="many"), (100, None, None)),
        (usage_of(completion_tokens_details={"reasoning_tokens": 1.5}), (100, 20, None)),
        ({"prompt_tokens": 100}, (100, None, None)),
        (None, (None, None, None)),
    ],
    ids=["half a token", "a word", "half a token of reasoning", "of the prompt alone", "none"],
)
def test_counts_that_are_no_whole_numbers_are_unknown_and_the_answer_is_a_reply(
    model_server: ModelServer, provider: str, usage: Any, counts: tuple[int | None, ...]
) -> None:
    model_server.rule(reply="so it is", usage=usage)
    with Client(configuration(model_server), QUICK) as client:
        reply = answer(client, request("x", f"{provider}/m"))
    assert isinstance(reply, Reply)
    assert (reply.text, reply.finish_reason) == ("so it is", "stop")
    assert (reply.input_tokens, reply.output_tokens, reply.reasoning_tokens) == counts
    assert len(model_server.seen) == 1


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_stream_with_half_a_token_is_a_reply(model_server: ModelServer, provider: str) -> None:
    model_server.rule(reply="so it is", usage=usage_of(completion_tokens=20.5))
    asked = replace(request("x", f"{provider}/m"), stream=True)
    with Client(configuration(model_server), QUICK) as client:
        reply = answer(client, asked)
    assert isinstance(reply, Reply)
    assert (reply.text, reply.finish_reason, reply.output_tokens) == ("so it is", "stop", None)


@pytest.mark.parametrize(("reason", "kind"), [("stop", "reply"), ("network_error", "server"), ("error", "server")])
def test_a_silent_stream_is_a_reply_where_the_model_ended_it(model_server: ModelServer, reason: str, kind: str) -> None:
    """As on the direct route; by OpenAI's library LiteLLM keeps the word by which the two are told apart."""
    model_server.rule(reply="", finish_reason=reason)
    with Client(configuration(model_server, attempts=1), QUICK) as client:
        outcome = answer(client, replace(request("x", "openai/m"), stream=True))
    assert (outcome.kind if isinstance(outcome, Failure) else "reply") == kind


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
