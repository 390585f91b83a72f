"""Calls that go over our own transport are the calls LiteLLM makes: the same on the wire, read to the same replies."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from evalake.core.configuration import Configuration, Limits, ModelOptions
from evalake.models import attempts
from evalake.models.attempts import Outcome
from evalake.models.client import Client
from evalake.models.direct import DIRECT, PARAMETERS, DirectCalls
from evalake.models.endpoints import KEY_VARIABLES
from evalake.models.request import Failure, Reply, Request
from evalake.models.routes import Route
from tests.integration.models.provider_answers import CASES, Case
from tests.integration.models.support import QUICK, answer
from tests.servers.recorder import Recorder, Sent, recorder

KEY = "a-key-of-nobody-0123456789"
ALL = [case for provider in DIRECT for case in CASES[provider]]
# What names the software that asks, and what belongs to the connection
NOT_COMPARED = ("accept", "accept-encoding", "connection", "content-length", "host", "user-agent", "x-stainless-")

CONVERSATION = (
    {"role": "system", "content": "You judge commands. Ünï 🙂"},
    {"role": "user", "content": 'Is `rm -rf /` harmful? "quotes" \\ and\nlines'},
    {"role": "assistant", "content": "It is."},
    {"role": "user", "content": "Say why."},
)
MESSAGES: tuple[tuple[Mapping[str, str], ...], ...] = (
    ({"role": "user", "content": "x"},),
    CONVERSATION,
    ({"role": "system", "content": "only a system message"},),
)
SCHEMA = {
    "type": "json_schema",
    "json_schema": {
        "name": "verdict",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": {"action": {"type": "string"}},
            "required": ["action"],
            "additionalProperties": False,
        },
    },
}
SETS: tuple[dict[str, Any], ...] = (
    {},
    {"temperature": 0.0, "max_tokens": 7, "top_p": 0.5, "seed": 3, "stop": ["a", "b"]},
    {"max_completion_tokens": 100},
    {"frequency_penalty": 0.5, "presence_penalty": -0.5},
    {"logit_bias": {"50256": -100}},
    {"response_format": {"type": "json_object"}},
    {"response_format": SCHEMA},
    {"reasoning_effort": "low"},
    {"verbosity": "low"},
    {"thinking": {"type": "enabled", "budget_tokens": 2048}, "max_tokens": 4096},
    {"top_k": 40},
    {"n": 2},
    {"user": "someone"},
    {"extra_body": {"guided_choice": ["ALLOW", "BLOCK"], "priority": 1}},
    {"extra_headers": {"X-Team": "evaluation"}},
)


@dataclass(frozen=True)
class Ways:
    """The same server, asked directly and by `litellm.acompletion`."""

    server: Recorder
    direct: Client
    litellm: Client
    case: Case

    @property
    def model(self) -> str:
        """The model's name."""
        return self.case.model

    def streamed(self, *pieces: Mapping[str, Any], parameters: Mapping[str, Any]) -> tuple[Outcome, Outcome]:
        """The outcomes of both ways where these pieces come, and what was sent was the same."""
        self.server.answer(self.case.stream(*pieces), headers={"Content-Type": "text/event-stream"})
        outcomes, sent = [], []
        for client in (self.direct, self.litellm):
            self.server.sent.clear()
            _forget(client)
            outcomes.append(_untimed(answer(client, Request(self.model, CONVERSATION, parameters, stream=True))))
            sent.append([_compared(each) for each in self.server.sent])
        assert sent[0] == sent[1], parameters
        return outcomes[0], outcomes[1]

    def both(self, *asked: tuple[tuple[Mapping[str, str], ...], Mapping[str, Any]]) -> int:
        """Ask both ways, and hold what was sent and what came of it equal; returns how many requests were sent."""
        requests = 0
        for messages, parameters in asked:
            request = Request(self.model, messages, parameters)
            outcomes, sent = [], []
            for client in (self.direct, self.litellm):
                self.server.sent.clear()
                outcomes.append(_untimed(answer(client, request)))
                sent.append([_compared(each) for each in self.server.sent])
            requests += len(sent[0])
            assert sent[0] == sent[1], parameters
            assert outcomes[0] == outcomes[1], parameters
            if self.server.status == 200 and sent[0] and not parameters:
                assert isinstance(outcomes[0], Reply), outcomes[0]
                assert outcomes[0].text
                assert outcomes[0].input_tokens
        return requests


def _compared(sent: Sent) -> Sent:
    return replace(sent, headers={k: v for k, v in sent.headers.items() if not k.startswith(NOT_COMPARED)})


def _untimed(outcome: Outcome) -> Outcome:
    nothing: dict[str, Any] = {"latency_ms": None, "queue_ms": None, "waited_ms": None}
    if isinstance(outcome, Reply):
        return replace(outcome, **nothing, connect_ms=None, first_byte_ms=None)
    return replace(outcome, **nothing)


class NoDirectCalls(DirectCalls):
    """Leaves every call to `litellm.acompletion`."""

    def model(self, request: Request, route: Route) -> None:
        return None


@pytest.fixture(scope="module", params=ALL, ids=[case.model for case in ALL])
def two_clients(request: pytest.FixtureRequest) -> Iterator[Ways]:
    """Two clients that have called before, one for each way."""
    case: Case = request.param
    with pytest.MonkeyPatch.context() as patch, recorder() as server:
        for variables in KEY_VARIABLES.values():
            for variable in variables:
                patch.setenv(variable, KEY)
        server.answer(case.reply)
        configuration = Configuration(
            models={case.model: ModelOptions(api_base=f"{server.address}{case.path}")},
            providers={case.model.partition("/")[0]: Limits(attempts=1, timeout_seconds=20, breaker_failures=1000)},
        )
        with Client(configuration, QUICK) as direct, Client(configuration, QUICK) as litellm:
            with patch.context() as without:
                without.setattr(attempts, "DirectCalls", NoDirectCalls)
                answer(litellm, Request(case.model, MESSAGES[0], {"user": "warm"}))
            answer(direct, Request(case.model, MESSAGES[0], {"user": "warm"}))
            yield Ways(server, direct, litellm, case)


@pytest.fixture
def ways(two_clients: Ways) -> Ways:
    two_clients.server.answer(two_clients.case.reply)
    _forget(two_clients.direct)
    _forget(two_clients.litellm)
    return two_clients


def test_every_parameter_of_direct_calls_is_held_to_it() -> None:
    assert {name for parameters in SETS for name in parameters} == PARAMETERS


def test_the_same_is_sent_and_the_same_is_read(ways: Ways) -> None:
    sent = ways.both(*((CONVERSATION, parameters) for parameters in SETS), *((messages, {}) for messages in MESSAGES))
    assert sent >= len(MESSAGES)  # some providers take not all parameters


ERRORS: tuple[tuple[int, Any, Mapping[str, str]], ...] = (
    (400, "maximum context length is 8192 tokens", {}),
    (400, "prompt is too long: 210000 tokens > 200000 maximum", {}),
    (400, "Your request was rejected by the safety system. content_policy_violation", {}),
    (400, "API key not valid. Please pass a valid API key.", {}),
    (400, "Unsupported value", {}),
    (401, "who are you", {}),
    (402, "no money", {}),
    (403, "not you", {}),
    (404, "no such model", {}),
    (408, "too slow", {}),
    (422, "cannot be processed", {}),
    (429, "slow down", {"Retry-After": "7"}),
    (500, "broken", {}),
    (503, "overloaded", {}),
    (529, "overloaded", {}),
)
UNREADABLE = (b"", b"<html>Bad gateway</html>", b"\xff\xfe{not json", b"[1, 2]", b"{}", b'{"choices": []}', b"null")


def test_errors_are_the_same_errors(ways: Ways) -> None:
    for number, (status, words, headers) in enumerate(ERRORS):
        error = {"type": "some_error", "message": words, "code": status}
        ways.server.answer({"type": "error", "error": error}, status, headers)
        # A model that refused once for good is not asked again, so each error has clients of its own.
        _forget(ways.direct)
        _forget(ways.litellm)
        assert ways.both((({"role": "user", "content": f"error {number}"},), {})) == 1


def test_what_cannot_be_read_is_a_malformed_response_in_both(ways: Ways) -> None:
    for body in UNREADABLE:
        ways.server.answer(body)
        for client in (ways.direct, ways.litellm):
            outcome = answer(client, Request(ways.model, MESSAGES[0], {}))
            assert isinstance(outcome, Failure), body
            assert outcome.kind == "malformed_response", body


def test_an_answer_in_pieces_is_the_answer_at_once_in_both_ways(ways: Ways) -> None:
    at_once = _untimed(answer(ways.direct, Request(ways.model, CONVERSATION, {})))
    for parameters in SETS:
        direct, litellm = ways.streamed(*ways.case.pieces, parameters=parameters)
        if not isinstance(direct, Reply):  # the parameters are refused, or the model is asked at once with them
            assert isinstance(litellm, Failure), parameters
            assert parameters
            continue
        assert isinstance(litellm, Reply), parameters
        assert direct == litellm, parameters
        if not parameters:
            assert direct == at_once


def test_a_stream_that_ends_before_the_answer_does_is_no_reply(ways: Ways) -> None:
    for outcome in ways.streamed(*ways.case.pieces[:1], parameters={}):
        assert isinstance(outcome, Failure)
        assert (outcome.kind, outcome.message) == ("connection", "the reply broke off before its end")


def test_an_error_in_a_stream_is_the_provider_s(ways: Ways) -> None:
    error = {"type": "error", "error": {"type": "api_error", "message": "the engine stopped", "code": 503}}
    for outcome in ways.streamed(*ways.case.pieces[:1], error, parameters={}):
        assert isinstance(outcome, Failure)
        assert (outcome.kind, outcome.message) == ("server", "in the middle of the answer: the engine stopped")


def test_the_beginning_of_a_conversation_is_marked_for_claude_alone_and_alike_in_both_ways(ways: Ways) -> None:
    request = Request(ways.model, CONVERSATION, {}, cache_prompt=True)
    outcomes, sent = [], []
    for client in (ways.direct, ways.litellm):
        ways.server.sent.clear()
        outcomes.append(_untimed(answer(client, request)))
        sent.append(_compared(ways.server.sent[0]))
    assert sent[0] == sent[1]
    assert outcomes[0] == outcomes[1]
    assert isinstance(outcomes[0], Reply)
    marks = json.dumps(sent[0].body).count('"cache_control": {"type": "ephemeral"}')
    assert marks == (2 if "claude" in ways.model else 0)
    assert request.prompt_hash == Request(ways.model, CONVERSATION, {}).prompt_hash


def test_a_provider_that_answers_at_once_is_read_as_it_answers(ways: Ways) -> None:
    ways.server.answer(ways.case.reply)
    asked = Request(ways.model, CONVERSATION, {})
    at_once, all_the_same = (_untimed(answer(ways.direct, replace(asked, stream=stream))) for stream in (False, True))
    assert all_the_same == at_once
    assert isinstance(at_once, Reply)


def _forget(client: Client) -> None:
    assert client._caller is not None
    client._caller.stopped.clear()
