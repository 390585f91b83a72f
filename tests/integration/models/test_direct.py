"""Calls that go over our own transport are the calls LiteLLM makes: the same address, headers and body."""

import json
import warnings
from collections.abc import Mapping
from typing import Any

import pytest

from evalake.models.direct import DIRECT, PARAMETERS, Asked, direct_model
from evalake.models.endpoints import KEY_VARIABLES
from evalake.models.litellm_calls import sent_by_litellm
from evalake.models.litellm_internals import load
from evalake.models.request import Request
from evalake.models.routes import Route
from tests.cases import cases_beside

CASES = cases_beside(__file__, "schema.json")

KEY = "a-key-of-nobody-0123456789"
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
SCHEMA = CASES["schema"]
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


MODELS = (
    *("azure/gpt-4o-mini", "azure/mine", "deepseek/deepseek-chat", "groq/llama-3.3-70b-versatile", "hosted_vllm/m"),
    *("mistral/mistral-large-latest", "openai/gpt-4o-mini", "openai/gpt-5-mini", "openai/o3", "openai/local"),
    *("openrouter/anthropic/claude-3.5-sonnet", "openrouter/openai/gpt-4o", "together_ai/meta-llama/Llama-3-8b"),
)


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in (name for names in KEY_VARIABLES.values() for name in names):
        monkeypatch.setenv(variable, KEY)


def told(asked: Asked) -> tuple[str, Mapping[str, str], Any]:
    """A request without the headers that name the software that asks."""
    headers = {name.lower(): value for name, value in asked.headers.items() if not name.startswith("x-stainless-")}
    return asked.address, headers, json.loads(asked.body)


def test_every_provider_and_parameter_of_direct_calls_is_held_to_it() -> None:
    assert {model.partition("/")[0] for model in MODELS} == DIRECT.keys()
    assert {name for parameters in SETS for name in parameters} == PARAMETERS


@pytest.mark.parametrize("arguments", [{"api_base": "http://none.invalid/v1"}, {}], ids=["a server", "the provider"])
@pytest.mark.parametrize("model", MODELS)
def test_the_same_is_sent(model: str, arguments: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("AZURE_API_BASE", "HOSTED_VLLM_API_BASE"):  # whose servers are their users' own
        monkeypatch.setenv(variable, "http://other.invalid")
    route = Route(model, model.partition("/")[0], arguments, None)
    requests = [Request(model, CONVERSATION, parameters, stream=each) for parameters in SETS for each in (False, True)]
    requests += [Request(model, messages, {}) for messages in MESSAGES]
    requests += [Request(model, CONVERSATION, {}, cache_prompt=True)]
    sent: list[Any] = []
    for request in requests:
        with warnings.catch_warnings(action="ignore"):  # LiteLLM's modules warn on their first use
            try:
                expected = told(sent_by_litellm(request, route))
            except load().BadRequestError as error:  # a parameter that the provider does not take
                with pytest.raises(type(error)):
                    direct_model(request, route)
                continue
            direct = direct_model(request, route)
        if direct is None:  # LiteLLM sends a tool for a format, or no stream
            assert {"response_format"} & request.parameters.keys()
            continue
        first = told(direct.asked(request))
        direct.asked(Request(model, MESSAGES[0], request.parameters))
        assert first == told(direct.asked(request)) == expected, (request.parameters, request.stream)
        sent.append(first[2])
    assert len(sent) > len(MESSAGES)
    marks = json.dumps(sent[-1]).count('"cache_control": {"type": "ephemeral"}')
    assert marks == (2 if "claude" in model else 0)


@pytest.mark.parametrize(("provider", "variable"), [("openai", "OPENAI_ORGANIZATION"), ("azure", "AZURE_AD_TOKEN")])
def test_what_only_litellm_does_is_left_to_it(provider: str, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    request = Request(f"{provider}/m", MESSAGES[0], {})
    route = Route(request.model, provider, {"api_base": "http://none.invalid"}, None)
    assert direct_model(request, route)
    assert direct_model(Request(request.model, MESSAGES[0], {"tools": []}), route) is None
    monkeypatch.setenv(variable, "something")
    assert direct_model(request, route) is None
