"""LiteLLM beside us: the same answers, the same requests."""

import asyncio
import warnings
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalake.core.configuration import Configuration, Limits, ModelOptions, Price
from evalake.core.redaction import KnownKeys
from evalake.models import direct
from evalake.models.attempts import Outcome
from evalake.models.client import Client
from evalake.models.litellm_internals import load
from evalake.models.replies import ProviderAnswer, read_answer, reply_of
from evalake.models.request import Failure, Reply
from evalake.models.routes import Route
from tests.integration.models.provider_answers import CASES, Case
from tests.integration.models.support import QUICK, answer, request
from tests.servers.model_server import ModelServer
from tests.servers.recorder import Recorder, recorder

# Calls by `litellm.acompletion`: asked once, over our own transport, and read as they came.

KEY = "a-key-of-nobody-0123456789"
BY_LITELLM = ("anthropic", "gemini", "ollama_chat", "xai")
CLAUDE = CASES["anthropic"][0]
UNTIMED: Mapping[str, Any] = dict.fromkeys(("latency_ms", "queue_ms", "waited_ms", "connect_ms", "first_byte_ms"), None)
STREAM = {"Content-Type": "text/event-stream"}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorder]:
    for provider in ("ANTHROPIC", "GEMINI", "XAI"):
        monkeypatch.setenv(f"{provider}_API_KEY", KEY)
    with recorder() as server:
        yield server


def ask(server: Recorder, model: str = CLAUDE.model, stream: bool = False, **limits: float) -> Outcome:
    """The outcome of a call by a client of its own."""
    options = ModelOptions(api_base=server.address)
    given = Limits.model_validate({"attempts": 1, **limits})
    with Client(Configuration(models={model: options}, providers={model.split("/")[0]: given}), QUICK) as client:
        return answer(client, replace(request("x", model), stream=stream))


@pytest.mark.parametrize("fault", ["server_error", "drop"])
@pytest.mark.parametrize("model", ["nebius/m", "databricks/m", "anthropic/claude-haiku-4-5"])
def test_litellm_tries_nothing_twice_by_itself(
    model_server: ModelServer, monkeypatch: pytest.MonkeyPatch, model: str, fault: str
) -> None:
    monkeypatch.setenv("DATABRICKS_API_KEY", KEY)
    model_server.rule(faults=[{"kind": fault, "times": 0}])
    options = {model: ModelOptions(api_base=model_server.api_base.removesuffix("/v1" if "claude" in model else ""))}
    limits = {model.split("/")[0]: Limits(attempts=2)}
    with Client(Configuration(models=options, providers=limits), QUICK) as client:
        outcome = answer(client, request("x", model))
    kind = "server" if fault == "server_error" else "connection"
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.attempts, len(model_server.seen)) == (kind, 2, 2)


@pytest.mark.parametrize("provider", [*BY_LITELLM, "openai"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_redirect_takes_no_key_elsewhere(server: Recorder, provider: str, stream: bool) -> None:
    with recorder() as elsewhere:
        server.answer(b"", 307, {"Location": f"{elsewhere.address}/v1"})
        outcome = ask(server, CASES[provider][0].model, stream)
    assert isinstance(outcome, Failure)
    assert (outcome.kind, elsewhere.sent) == ("server", [])


def test_a_reply_larger_than_any_model_writes_is_cut_off(server: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalake.models.litellm_calls.LARGEST_REPLY", 100)
    assert direct.LARGEST_REPLY > 100
    server.answer(CLAUDE.reply)
    outcome = ask(server)
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.message) == ("malformed_response", "the reply is larger than 100 bytes")


@pytest.mark.parametrize("case", [case for name in BY_LITELLM for case in CASES[name]], ids=str)
def test_a_stream_is_the_answer_at_once_and_one_that_breaks_off_is_none(server: Recorder, case: Case) -> None:
    def outcome(stream: bool = True) -> Outcome:
        ended = ask(server, case.model, stream)
        return replace(ended, **UNTIMED) if isinstance(ended, Reply) else ended

    server.answer(case.reply)
    at_once, all_the_same = outcome(False), outcome()
    server.answer(case.stream(*case.pieces), headers=STREAM)
    streamed = outcome()
    assert isinstance(at_once, Reply)
    assert isinstance(streamed, Reply)
    assert at_once.input_tokens
    assert at_once == all_the_same == replace(streamed, model_reported=at_once.model_reported)
    error = {"type": "error", "error": {"type": "api_error", "message": "the engine stopped", "code": 503}}
    for pieces, said in (
        (case.pieces[:1], ("connection", "the reply broke off before its end")),
        ((*case.pieces[:1], error), ("server", "in the middle of the answer: the engine stopped")),
    ):
        server.answer(case.stream(*pieces), headers=STREAM)
        failed = outcome()
        assert isinstance(failed, Failure)
        assert (failed.kind, failed.message) == said


def test_each_piece_of_claude_s_answer_extends_the_timeout(server: Recorder) -> None:
    server.answer(CLAUDE.stream(*CLAUDE.pieces), headers=STREAM, pause=0.6)
    outcome = ask(server, stream=True, timeout_seconds=4)
    assert isinstance(outcome, Reply), outcome
    assert outcome.latency_ms is not None
    assert outcome.latency_ms > 4000


def test_litellm_beside_evalake_goes_its_own_way(server: Recorder) -> None:
    """A user's own call in the same process is neither refused nor recorded."""
    server.answer(CLAUDE.reply)
    assert isinstance(ask(server), Reply)
    for case in (CLAUDE, CASES["openai"][0]):
        server.answer(case.reply)
        messages = [{"role": "user", "content": "mine"}]
        asked = load().acompletion(model=case.model, messages=messages, api_base=server.address, api_key=KEY)
        assert asyncio.run(asked).choices[0].message.content


# What is read of a usual answer in OpenAI's form is what LiteLLM reads of it.

COUNTS = st.one_of(st.integers(0, 2**20), st.none())
NOTHING = st.none()
TEXTS = st.one_of(
    st.text(min_size=1, max_size=30),
    st.sampled_from(["<think>so</think>BLOCK", "<thinking>so", "half a \ud83d", '{"a": 1}']),
)


def fields(needed: dict[str, Any], optional: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects with the needed fields, and some of the others."""
    return st.fixed_dictionaries(needed, optional=optional)


DETAILS = {
    "prompt_tokens_details": fields({}, {"cached_tokens": COUNTS, "audio_tokens": COUNTS}),
    "completion_tokens_details": fields(
        {}, {"reasoning_tokens": COUNTS, "audio_tokens": COUNTS, "rejected_prediction_tokens": COUNTS}
    ),
}
USAGE = fields(
    {name: st.integers(0, 2**20) for name in ("prompt_tokens", "completion_tokens", "total_tokens")},
    {name: st.one_of(st.none(), details) for name, details in DETAILS.items()},
)
MESSAGE = fields(
    {"role": st.just("assistant"), "content": TEXTS},
    {
        **dict.fromkeys(("refusal", "audio", "function_call", "reasoning_content", "reasoning"), NOTHING),
        **dict.fromkeys(("annotations", "tool_calls"), st.one_of(NOTHING, st.just([]))),
    },
)
CHOICE = fields(
    {"index": st.just(0), "message": MESSAGE, "finish_reason": st.sampled_from(["stop", "length", "eos"])},
    dict.fromkeys(("logprobs", "stop_reason", "token_ids"), NOTHING),
)
ANSWER = fields(
    {
        "id": st.text(max_size=5),
        "object": st.just("chat.completion"),
        "created": st.integers(0, 2**31),
        "model": st.text(max_size=8),
        "choices": st.lists(CHOICE, min_size=1, max_size=2),
    },
    {
        "usage": st.one_of(NOTHING, USAGE),
        "service_tier": st.one_of(NOTHING, st.just("default")),
        "system_fingerprint": st.one_of(NOTHING, st.text(max_size=4)),
        **dict.fromkeys(("prompt_logprobs", "prompt_token_ids", "kv_transfer_params"), NOTHING),
    },
)


def by_litellm(answer: dict[str, Any]) -> ProviderAnswer:
    """What LiteLLM reads of an answer."""
    with warnings.catch_warnings(action="ignore"):  # of its modules, on their first use
        from litellm.litellm_core_utils.llm_response_utils import convert_dict_to_response as convert

        model: Any = load().ModelResponse()
        read = convert.convert_to_model_response_object(
            response_object=answer, model_response_object=model, hidden_params={}
        )
    return read_answer(read)


@settings(max_examples=100)
@given(answer=ANSWER)
def test_whatever_is_read_here_is_what_litellm_reads(answer: dict[str, Any]) -> None:
    route = Route("openai/m", "openai", {}, Price(input=2.0, output=10.0, cached_input=0.5))
    here, there = read_answer(answer), by_litellm(deepcopy(answer))
    assert reply_of(here, route, KnownKeys()) == reply_of(there, route, KnownKeys())
