"""A request that is filled into a template is the one that LiteLLM's provider class would have made."""

import json
import warnings
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from providers.direct_models import DIRECT, DirectModel
from providers.routes import Route
from tests.providers.test_direct import MESSAGES, SETS

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


def both_ways(model: DirectModel, messages: list[dict[str, str]]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Address, headers and body as the template has them, and as LiteLLM has."""
    assert model.template is not None
    filled = model.template.address, model.template.headers, json.loads(model.template.body(messages))
    return filled, model.request([dict(message) for message in messages])


@pytest.mark.parametrize("parameters", SETS, ids=str)
@pytest.mark.parametrize("name", MODELS)
def test_a_template_has_all_that_litellm_sends(name: str, parameters: dict[str, Any]) -> None:
    model = model_of(name, **parameters)
    try:
        model.request([{"role": "user", "content": "x"}])
    except Exception as error:  # noqa: BLE001 - LiteLLM's own, for what the model does not take
        with pytest.raises(type(error)):
            _ = model.template
        return
    for messages in MESSAGES:
        filled, made = both_ways(model, [dict(message) for message in messages])
        assert filled == made


@pytest.mark.parametrize("name", MODELS)
@settings(deadline=None, max_examples=20)
@given(messages=CONVERSATIONS)
def test_messages_of_any_kind_are_sent_as_they_are(name: str, messages: list[dict[str, str]]) -> None:
    filled, made = both_ways(model_of(name), messages)
    assert filled == made


@pytest.mark.parametrize("name", ["openai/o3", "anthropic/claude-haiku-4-5", "mistral/mistral-large-latest"])
def test_where_litellm_makes_something_of_the_messages_there_is_no_template(name: str) -> None:
    assert model_of(name).template is None
