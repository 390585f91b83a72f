"""What is read of a plain answer is what LiteLLM reads of it, and anything else is left to LiteLLM."""

import json
import warnings
from functools import cache
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.configuration import Price
from core.redaction import KnownKeys
from providers.cost import Tokens
from providers.direct_models import DIRECT, DirectModel
from providers.plain_answers import read_plain
from providers.replies import ProviderAnswer, read_response, reply_of
from providers.routes import Route

READERS = sorted(name for name, kind in DIRECT.items() if kind.answers_like_openai)
MODELS = {name: f"{name}/m" for name in READERS}
COUNTS = st.one_of(st.integers(0, 2**20), st.none())
NOTHING = st.none()
ODD: st.SearchStrategy[Any] = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.floats(allow_nan=False), st.text(max_size=3), st.just([]),
    st.just({}), st.just([{}]), st.just(["x"]),
)  # fmt: skip
TEXTS = st.one_of(
    st.text(max_size=30), st.sampled_from(["<think>so</think>BLOCK", "<thinking>so", "half a \ud83d", '{"a": 1}'])
)


def fields(needed: dict[str, Any], optional: dict[str, Any], odd: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects with the needed fields, and now and then a field more, or one that is not as it should be."""
    usual = st.fixed_dictionaries(needed, optional=optional)
    strange = st.dictionaries(st.sampled_from([*needed, *optional, *odd]), ODD, max_size=1)
    return st.one_of(usual, usual, st.builds(lambda one, other: {**one, **other}, usual, strange))


DETAILS = {
    "prompt_tokens_details": fields(
        {}, {"cached_tokens": COUNTS, "audio_tokens": COUNTS}, ["text_tokens", "cache_creation_tokens"]
    ),
    "completion_tokens_details": fields(
        {}, {"reasoning_tokens": COUNTS, "audio_tokens": COUNTS, "rejected_prediction_tokens": COUNTS}, ["text_tokens"]
    ),
}
USAGE = fields(
    {name: st.integers(0, 2**20) for name in ("prompt_tokens", "completion_tokens", "total_tokens")},
    {name: st.one_of(st.none(), details) for name, details in DETAILS.items()},
    ["reasoning_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens", "cost", "server_tool_use"],
)
MESSAGE = fields(
    {"role": st.just("assistant"), "content": TEXTS},
    {
        **dict.fromkeys(("refusal", "audio", "function_call", "reasoning_content", "reasoning"), NOTHING),
        **dict.fromkeys(("annotations", "tool_calls"), st.one_of(NOTHING, st.just([]))),
    },
    ["thinking_blocks", "images", "provider_specific_fields", "name"],
)
CHOICE = fields(
    {"index": st.just(0), "message": MESSAGE, "finish_reason": st.sampled_from(["stop", "length", "eos", None])},
    dict.fromkeys(("logprobs", "stop_reason", "token_ids"), NOTHING),
    ["finish_details", "enhancements"],
)
ANSWER = fields(
    {
        "id": st.text(max_size=5),
        "object": st.just("chat.completion"),
        "created": st.integers(0, 2**31),
        "model": st.text(max_size=8),
        "choices": st.one_of(st.lists(CHOICE, min_size=1, max_size=1), st.lists(CHOICE, max_size=2)),
    },
    {
        "usage": st.one_of(NOTHING, USAGE),
        "service_tier": st.one_of(NOTHING, st.just("default")),
        "system_fingerprint": st.one_of(NOTHING, st.text(max_size=4)),
        **dict.fromkeys(("prompt_logprobs", "prompt_token_ids", "kv_transfer_params"), NOTHING),
    },
    ["error", "citations", "hidden_params", "stream", "message"],
)


@cache
def litellm_of(provider: str) -> DirectModel:
    """How a provider is asked; its modules warn on their first use, as of every process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        arguments = {"api_base": "http://none.invalid", "api_key": "nobody's"}
        model = DIRECT[provider](Route(MODELS[provider], provider, arguments, None), {})
        body = json.dumps(plain_answer()).encode()
        model.read(httpx.Response(200, content=body, request=httpx.Request("POST", "http://none.invalid")), {}, [])
        return model


def by_litellm(provider: str, body: bytes) -> ProviderAnswer:
    """What LiteLLM reads of an answer."""
    model = litellm_of(provider)
    answer = httpx.Response(200, content=body, request=httpx.Request("POST", "http://none.invalid"))
    return read_response(model.read(answer, {}, [{"role": "user", "content": "x"}]), model.route)


@pytest.mark.parametrize("provider", READERS)
@settings(deadline=None, max_examples=40)
@given(answer=ANSWER)
def test_whatever_is_read_here_is_what_litellm_reads(provider: str, answer: dict[str, Any]) -> None:
    body = json.dumps(answer).encode()
    plain = read_plain(body)
    if plain is None:
        return  # LiteLLM has the word
    litellm = by_litellm(provider, body)
    route = Route(MODELS[provider], provider, {}, Price(input=2.0, output=10.0, cached_input=0.5))
    assert reply_of(plain, route, KnownKeys()) == reply_of(litellm, route, KnownKeys())


def plain_answer(**changed: Any) -> dict[str, Any]:
    """An answer as OpenAI gives it."""
    message = {"role": "assistant", "content": "BLOCK", "refusal": None, "annotations": []}
    usage = {
        "prompt_tokens": 1000,
        "completion_tokens": 50,
        "total_tokens": 1050,
        "prompt_tokens_details": {"cached_tokens": 400, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 20, "audio_tokens": 0, "rejected_prediction_tokens": 0},
    }
    answer = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "gpt-4o-mini-2024-07-18",
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}],
        "usage": usage,
        "service_tier": "default",
        "system_fingerprint": "fp_1",
    }
    return {**answer, **changed}


def test_what_openai_says_of_a_plain_answer_is_read_here() -> None:
    read = read_plain(json.dumps(plain_answer()).encode())
    assert read == ProviderAnswer("BLOCK", "stop", "gpt-4o-mini-2024-07-18", Tokens(1000, 50, 400, 20))
    assert read_plain(json.dumps(plain_answer(usage=None)).encode()) == ProviderAnswer(
        "BLOCK", "stop", "gpt-4o-mini-2024-07-18", Tokens()
    )


@pytest.mark.parametrize(
    "message",
    [
        {"content": None, "refusal": "I cannot."},
        {"content": "", "reasoning_content": None},
        {"content": "<think>so</think>BLOCK"},
        {"content": "BLOCK", "reasoning_content": "so"},
        {"content": "BLOCK", "tool_calls": [{"id": "t", "type": "function", "function": {"name": "f"}}]},
        {"content": [{"type": "text", "text": "BLOCK"}]},
        {"content": "BLOCK", "something": "new"},
    ],
)
def test_a_message_with_more_in_it_than_a_text_is_litellms(message: dict[str, Any]) -> None:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
    assert read_plain(json.dumps(plain_answer(choices=[choice])).encode()) is None


@pytest.mark.parametrize("body", [b"", b"null", b"[]", b"{}", b"\xff", b"[" * 100_000, b'{"error": {"message": "no"}}'])
def test_what_is_no_answer_is_litellms(body: bytes) -> None:
    assert read_plain(body) is None
