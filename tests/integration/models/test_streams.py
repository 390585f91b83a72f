"""Streams and answers as providers state them."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from evalake.core.configuration import Configuration, Limits, ModelOptions
from evalake.models import attempts, replies
from evalake.models.attempts import Outcome
from evalake.models.client import Client
from evalake.models.endpoints import KEY_VARIABLES
from evalake.models.replies import read_events
from evalake.models.request import Failure, Reply, Request
from tests.integration.models.support import PROVIDERS, QUICK, answer, configuration
from tests.servers.model_server import ModelServer
from tests.servers.recorder import Recorder, recorder

# Answers that come in pieces: bought once however long they take, cut off in silence, and never taken for whole.


@pytest.fixture(params=PROVIDERS)
def streams_model(request: pytest.FixtureRequest) -> str:
    return f"{request.param}/m"


def ask(limits: Configuration, model: str, stream: bool = True) -> Outcome:
    """The outcome of a call by a client that has called before, which takes time."""
    messages = ({"role": "system", "content": "You judge."}, {"role": "user", "content": "judge this"})
    with Client(limits, backoff_seconds=QUICK) as client:
        answer(client, Request(model, ({"role": "user", "content": "first"},), {}, stream=True))
        return answer(client, Request(model, messages, {}, stream=stream))


def failed(outcome: Outcome) -> tuple[str, int]:
    """Its kind and the attempts."""
    assert isinstance(outcome, Failure), outcome
    return outcome.kind, outcome.attempts


def test_it_is_asked_for_and_read_as_an_answer_at_once(model_server: ModelServer, streams_model: str) -> None:
    model_server.rule(contains="judge", reply="it is vulnerable, and this is why: …")
    limits = configuration(model_server)
    streamed, at_once = ask(limits, streams_model), ask(limits, streams_model, stream=False)
    bodies = [seen.body for seen in model_server.requests("judge")]
    assert bodies[0] == {**bodies[1], "stream": True, "stream_options": {"include_usage": True}}
    assert isinstance(streamed, Reply)
    assert isinstance(at_once, Reply)
    assert streamed.text == at_once.text == "it is vulnerable, and this is why: …"
    assert (streamed.finish_reason, streamed.input_tokens, streamed.output_tokens) == ("stop", 20, 5)
    assert streamed.cost_usd == at_once.cost_usd


def test_how_it_comes_is_no_part_of_what_was_asked() -> None:
    request = Request("openai/m", ({"role": "user", "content": "x"},), {"temperature": 0})
    streamed = Request("openai/m", ({"role": "user", "content": "x"},), {"temperature": 0}, stream=True)
    assert streamed.canonical == request.canonical
    assert streamed.prompt_hash == request.prompt_hash


def test_an_answer_that_is_never_silent_for_long_is_bought_once(model_server: ModelServer, streams_model: str) -> None:
    model_server.rule(contains="judge", reply="a long, long answer", pieces=8, pause=0.6)
    outcome = ask(configuration(model_server, timeout_seconds=4, attempts=3), streams_model)
    assert isinstance(outcome, Reply), outcome
    assert (outcome.text, outcome.attempts) == ("a long, long answer", 1)
    assert len(model_server.requests("judge")) == 1
    assert outcome.latency_ms is not None
    assert outcome.first_byte_ms is not None
    assert outcome.latency_ms > 4000
    assert 600 <= outcome.first_byte_ms < outcome.latency_ms - 1000


@pytest.mark.parametrize("fault", ["hang", "stream_silent"])
def test_silence_is_a_timeout(model_server: ModelServer, streams_model: str, fault: str) -> None:
    model_server.rule(contains="judge", faults=[{"kind": fault, "times": 0}])
    outcome = ask(configuration(model_server, timeout_seconds=0.5, attempts=2), streams_model)
    assert failed(outcome) == ("timeout", 2)
    assert isinstance(outcome, Failure)
    assert outcome.message == "no data for 0.5 seconds"


@pytest.mark.parametrize("fault", ["stream_endless", "slow_drip"])
def test_what_drips_without_end_is_a_timeout(
    model_server: ModelServer, streams_model: str, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempts, "LONGEST", 2)
    model_server.rule(contains="judge", faults=[{"kind": fault, "times": 0}])
    outcome = ask(configuration(model_server, timeout_seconds=0.5, attempts=1), streams_model)
    assert failed(outcome) == ("timeout", 1)


def test_more_pieces_than_a_model_writes_are_no_reply(
    model_server: ModelServer, streams_model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replies, "MOST_PIECES", 100)
    model_server.rule(contains="judge", reply="x" * 200, pieces=200)
    assert failed(ask(configuration(model_server, attempts=1), streams_model)) == ("malformed_response", 1)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ({"kind": "stream_cut"}, "connection"),
        ({"kind": "stream_ended"}, "connection"),
        ({"kind": "stream_error"}, "server"),
        ({"kind": "drop"}, "connection"),
        ({"kind": "html"}, "malformed_response"),
        ({"kind": "rate_limit"}, "rate_limit"),
        ({"kind": "server_error"}, "server"),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else value,
)
def test_what_breaks_off_is_tried_again_and_never_taken_for_whole(
    model_server: ModelServer, streams_model: str, fault: dict[str, object], kind: str
) -> None:
    model_server.rule(contains="judge", reply="SAFE, or is it?", faults=[{**fault, "times": 2}])
    again = ask(configuration(model_server, attempts=3), streams_model)
    assert isinstance(again, Reply), again
    assert (again.text, again.attempts) == ("SAFE, or is it?", 3)
    model_server.reset()
    assert failed(ask(configuration(model_server, attempts=2), streams_model)) == (kind, 2)


def test_events_are_read_to_their_end() -> None:
    body = (
        b': a comment\r\n\r\nevent: a\r\nid: 1\r\ndata: {"a": 1}\r\n\r\ndata:{"a": 2}\n\ndata: [DONE]\n\ndata: {"a": 3}'
    )
    assert list(read_events(body)) == [{"a": 1}, {"a": 2}]
    assert list(read_events(b'{"a": 1}\n{"a": 2}\n')) == [{"a": 1}, {"a": 2}]
    with pytest.raises(ValueError, match="Expecting"):
        list(read_events(b"data: {nope\n\n"))


# An answer is what its provider states, by every route, at once and in pieces: LiteLLM's guesses are not read.
#
# LiteLLM takes `[DONE]`, a null and unknown words for the reason "stop", estimates tokens, and skips broken pieces.

# Asked directly; by OpenAI's library; and by LiteLLM's handlers
OPENAI = ("openai/m", "hosted_vllm/m", "nebius/m", "databricks/m", "xai/m")
CLAUDE, GEMINI, OLLAMA, COHERE = (
    *("anthropic/claude-haiku-4-5", "gemini/gemini-2.0-flash", "ollama_chat/m", "cohere_chat/m"),
)
USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
TOOL = {"index": 0, "id": "c", "type": "function", "function": {"name": "verdict", "arguments": "{}"}}
PARTS = [{"type": "thinking", "thinking": [{"type": "text", "text": "so"}]}, {"type": "text", "text": "BLOCK"}]


def whole(message: Mapping[str, Any], reason: Any = "stop", usage: Any = USAGE, **further: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": reason, **further}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}


def piece(delta: Mapping[str, Any], reason: Any = None, **further: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": reason, **further}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


def counted(usage: Any = USAGE) -> dict[str, Any]:
    return {**piece({}), "choices": [], "usage": usage}


def events(*pieces: Any, done: bool = True) -> bytes:
    said = [each if isinstance(each, bytes) else json.dumps(each).encode() for each in pieces]
    return b"".join(b"data: " + each + b"\n\n" for each in (*said, *([b"[DONE]"] if done else [])))


BLO, CK, STOP = piece({"role": "assistant", "content": "BLO"}), piece({"content": "CK"}), piece({}, "stop")
# What is answered, and what it is: a kind of failure, or text, finish reason, input and output tokens, empty kind
STREAMS: dict[str, tuple[bytes, Any]] = {
    "usual": (events(BLO, CK, STOP, counted()), ("BLOCK", "stop", 100, 20, None)),
    "no reason": (events(BLO, CK, counted()), "connection"),
    "cut": (events(BLO, CK, done=False), "connection"),
    "own word": (events(BLO, CK, piece({}, "paused"), counted()), ("BLOCK", "paused", 100, 20, None)),
    "cut short": (events(BLO, piece({}, "length")), ("BLO", "length", None, None, None)),
    "a mark in it": (events(piece({"content": "data: [DONE]"}), STOP), ("data: [DONE]", "stop", None, None, None)),
    "reason error": (events(BLO, piece({}, "network_error")), "server"),
    "choice error": (events(BLO, piece({}, "stop", error={"message": "late", "code": 504})), "server"),
    "error": (events(BLO, {"error": {"message": "slow down", "code": 429}}), "rate_limit"),
    "broken piece": (events(BLO, b'{"choices": [{"ind', STOP), "malformed_response"),
    "half a token": (
        events(BLO, CK, STOP, counted({**USAGE, "completion_tokens": 20.5})),
        ("BLOCK", "stop", 100, None, None),
    ),
    "uncounted": (events(BLO, CK, STOP), ("BLOCK", "stop", None, None, None)),
    "parts": (events(piece({"role": "assistant", "content": PARTS}), STOP), ("BLOCK", "stop", None, None, None)),
    "thoughts": (events(piece({"reasoning": "so"}), STOP), (None, "stop", None, None, "reasoning_only")),
    "a tool": (
        events(piece({"tool_calls": [TOOL]}), piece({}, "tool_calls")),
        (None, "tool_calls", None, None, "tool_call_only"),
    ),
    "refused": (events(piece({"refusal": "no"}), STOP), (None, "stop", None, None, "refusal")),
    "nothing": (events(piece({"content": ""}), STOP), (None, "stop", None, None, "nothing")),
    "silence": (b"", "malformed_response"),
    "at once": (json.dumps(whole({"content": "BLOCK"})).encode(), ("BLOCK", "stop", 100, 20, None)),
    # The last, for the model is asked no more
    "error alone": (events({"error": {"message": "no key", "code": 401}}, done=False), "authentication"),
}
ANSWERS: dict[str, tuple[Any, Any]] = {
    "null": (whole({"content": "BLOCK"}, None), ("BLOCK", None, 100, 20, None)),
    "choices alone": ({"choices": [{"message": {"content": "BLOCK"}}]}, ("BLOCK", None, None, None, None)),
    "own word": (whole({"content": "BLOCK"}, "paused"), ("BLOCK", "paused", 100, 20, None)),
    "choice error": (whole({"content": ""}, error={"message": "late", "code": 504}), "server"),
    "error": ({"error": {"message": "slow down", "code": 429}}, "rate_limit"),
    "parts": (whole({"content": PARTS}), ("BLOCK", "stop", 100, 20, None)),
    "refused": (whole({"content": None, "refusal": "no"}), (None, "stop", 100, 20, "refusal")),
    "zeros": (whole({"content": "B"}, usage=dict.fromkeys(USAGE, 0)), ("B", "stop", None, None, None)),
    "thoughts beside": (
        whole(
            {"content": "B"},
            usage={**USAGE, "total_tokens": 150, "completion_tokens_details": {"reasoning_tokens": 30}},
        ),
        ("B", "stop", 100, 50, None),
    ),
    "half a token": (
        whole({"content": "B"}, usage={**USAGE, "completion_tokens": 20.5}),
        ("B", "stop", 100, None, None),
    ),
}
_CLAUDE: dict[str, Any] = {
    **{"id": "m", "type": "message", "role": "assistant", "model": "c", "stop_reason": "end_turn"},
    "content": [{"type": "text", "text": "BLOCK"}],
    "usage": {"input_tokens": 100, "output_tokens": 20},
}
_CANDIDATE: dict[str, Any] = {"content": {"role": "model", "parts": [{"text": "BLOCK"}]}, "finishReason": "STOP"}
_GEMINI = {"candidates": [_CANDIDATE], "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 20}}
_OLLAMA = {"model": "m", "created_at": "2026-01-01T00:00:00Z", "message": {"role": "assistant", "content": "BLOCK"}}
_COHERE = {"id": "c", "message": {"role": "assistant", "content": []}, "usage": {"tokens": {"input_tokens": 100}}}
OTHERS: tuple[tuple[str, Any, Any], ...] = (
    (CLAUDE, {**_CLAUDE, "stop_reason": None}, ("BLOCK", None, 100, 20, None)),
    (CLAUDE, {**_CLAUDE, "stop_reason": "pause_turn"}, ("BLOCK", "pause_turn", 100, 20, None)),
    (CLAUDE, {**_CLAUDE, "usage": {"input_tokens": 100, "output_tokens": 20.5}}, ("BLOCK", "stop", 100, None, None)),
    (CLAUDE, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "server"),
    (GEMINI, {**_GEMINI, "candidates": [{**_CANDIDATE, "finishReason": None}]}, ("BLOCK", None, 100, 20, None)),
    (
        GEMINI,
        {**_GEMINI, "candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL", "content": {}}]},
        (None, "MALFORMED_FUNCTION_CALL", 100, 20, "nothing"),
    ),
    (OLLAMA, {**_OLLAMA, "done": True, "done_reason": "stop"}, ("BLOCK", "stop", None, None, None)),
    (OLLAMA, {**_OLLAMA, "done": False}, "connection"),
    (OLLAMA, {"error": "the runner has stopped"}, "server"),
    (COHERE, {**_COHERE, "finish_reason": "ERROR"}, "server"),
)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorder]:
    further = ("COHERE_API_KEY", "DATABRICKS_API_KEY", "NEBIUS_API_KEY")
    for variable in (name for names in (*KEY_VARIABLES.values(), further) for name in names):
        monkeypatch.setenv(variable, "a-key-of-nobody")
    with recorder() as server:
        yield server


def client_of(server: Recorder, *models: str) -> Client:
    """A client of models at the server, with one attempt for each call."""
    bases = {name: server.address if name in (CLAUDE, GEMINI, OLLAMA) else f"{server.address}/v1" for name in models}
    limits = Limits(attempts=1, timeout_seconds=20, breaker_failures=1000)
    options = {name: ModelOptions(api_base=base) for name, base in bases.items()}
    return Client(Configuration(models=options, providers={name.split("/")[0]: limits for name in models}), QUICK)


def asked(client: Client, model: str, text: str, stream: bool = False) -> Any:
    """What comes of one call: the kind of a failure, or the parts of a reply."""
    outcome = answer(client, Request(model, ({"role": "user", "content": text},), {}, stream=stream))
    if isinstance(outcome, Failure):
        return outcome.kind
    said = outcome.text or None
    return said, outcome.finish_reason, outcome.input_tokens, outcome.output_tokens, outcome.empty_kind


@pytest.mark.parametrize("model", OPENAI)
def test_an_answer_in_openai_s_form(server: Recorder, model: str) -> None:
    with client_of(server, model) as client:
        for name, (body, expected) in ANSWERS.items():
            server.answer(body)
            assert asked(client, model, name) == expected, name
        for name, (body, expected) in STREAMS.items():
            kind = "application/json" if body.startswith(b"{") else "text/event-stream"
            server.answer(body, headers={"Content-Type": kind})
            assert asked(client, model, name, stream=True) == expected, name


def test_an_answer_in_another_form(server: Recorder) -> None:
    with client_of(server, CLAUDE, GEMINI, OLLAMA, COHERE) as client:
        for number, (model, body, expected) in enumerate(OTHERS):
            server.answer(body)
            assert asked(client, model, str(number)) == expected, body
