"""Requests of one model are independent of each other, and hold the messages as they are."""

import json
import warnings
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalake.models.direct import DirectModel
from evalake.models.request import Request
from evalake.models.routes import Route
from tests.integration.models.test_direct import MESSAGES, SETS

MODELS = ("openai/gpt-4o-mini", "openai/gpt-5-mini", "openai/local", "hosted_vllm/m")
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
CONVERSATIONS = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(["system", "user", "assistant"]), "content": TEXTS}), min_size=1
)


def model_of(name: str, **parameters: Any) -> DirectModel:
    provider = name.partition("/")[0]
    route = Route(name, provider, {"api_base": "http://none.invalid/v1", "api_key": "a-key-of-nobody"}, None)
    with warnings.catch_warnings(action="ignore"):  # LiteLLM's modules warn on their first use
        return DirectModel(route, parameters)


@pytest.mark.parametrize("name", MODELS)
def test_a_request_leaves_nothing_behind_for_the_next(name: str) -> None:
    built = 0
    for parameters in SETS:
        try:
            model = model_of(name, **parameters)
        except Exception:  # noqa: BLE001, S112 - LiteLLM's own, for what the model does not take
            continue
        first, *others = (Request(name, messages, parameters) for messages in MESSAGES)
        before = model.asked(first)
        for each in others:
            model.asked(each)
        assert model.asked(first) == before
        built += 1
    assert built > 5


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=20)
@given(messages=CONVERSATIONS)
def test_messages_of_any_kind_are_sent_as_they_are(name: str, messages: list[dict[str, str]]) -> None:
    sent = model_of(name).asked(Request(name, tuple(messages), {}))
    assert json.loads(sent.body)["messages"] == messages
