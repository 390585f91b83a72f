"""Requests of one model are independent of each other, and hold the messages as they are."""

import json
import warnings
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalake.models.direct_models import DIRECT, DirectModel, encoded
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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # LiteLLM's modules warn on their first use
        model = DIRECT[provider](route, parameters)
        model.settings.get_supported_openai_params(model.model)
    return model


@pytest.mark.parametrize("parameters", SETS, ids=str)
@pytest.mark.parametrize("name", MODELS)
def test_a_request_leaves_nothing_behind_for_the_next(name: str, parameters: dict[str, Any]) -> None:
    model = model_of(name, **parameters)
    try:
        first = model.request([{"role": "user", "content": "x"}])
    except Exception as error:  # noqa: BLE001 - LiteLLM's own, for what the model does not take
        with pytest.raises(type(error)):
            model.request([{"role": "user", "content": "x"}])
        return
    for messages in MESSAGES:
        model.request([dict(message) for message in messages])
    assert model.request([{"role": "user", "content": "x"}]) == first


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=20)
@given(messages=CONVERSATIONS)
def test_messages_of_any_kind_are_sent_as_they_are(name: str, messages: list[dict[str, str]]) -> None:
    _, _, body = model_of(name).request([dict(message) for message in messages])
    assert json.loads(encoded(body))["messages"] == messages
