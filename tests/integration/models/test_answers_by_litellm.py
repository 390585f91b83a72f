"""What is read of a usual answer in OpenAI's form is what LiteLLM reads of it."""

import warnings
from copy import deepcopy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from evalake.core.configuration import Price
from evalake.core.redaction import KnownKeys
from evalake.models.litellm_setup import load
from evalake.models.replies import ProviderAnswer, read_answer, reply_of
from evalake.models.routes import Route

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
