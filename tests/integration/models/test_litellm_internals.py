"""The names of LiteLLM that it does not promise to keep are there, and take what we hand them."""

import importlib
import inspect
from importlib.metadata import version

import pytest

from evalake.models import litellm_internals
from evalake.models.litellm_setup import load

# module, name, the parameters that are handed over by name
NAMES = (
    ("litellm._internal_context", "is_internal_call", ()),
    ("litellm", "response_cost_calculator", ()),
    ("litellm", "in_memory_llm_clients_cache", ()),
    ("litellm", "AZURE_DEFAULT_API_VERSION", ()),
    ("litellm", "exception_type", ("model", "custom_llm_provider", "original_exception")),
    ("litellm.utils", "custom_llm_setup", ()),
    ("litellm.utils", "ProviderConfigManager.get_provider_chat_config", ("model", "provider")),
    ("litellm.utils", "get_optional_params", ("model", "custom_llm_provider", "messages", "max_retries", "stream")),
    ("litellm.main", "responses_api_bridge_check", ("model", "custom_llm_provider", "reasoning_effort")),
    (
        "litellm.litellm_core_utils.get_litellm_params",
        "get_litellm_params",
        ("api_key", "custom_llm_provider", "api_base", "acompletion"),
    ),
    (
        "litellm.litellm_core_utils.llm_response_utils.convert_dict_to_response",
        "convert_to_model_response_object",
        ("response_object", "model_response_object", "hidden_params", "_response_headers"),
    ),
    (
        "litellm.llms.vertex_ai.gemini.vertex_and_google_ai_studio_gemini",
        "VertexLLM._get_token_and_url",
        ("model", "auth_header", "gemini_api_key", "stream", "custom_llm_provider", "api_base"),
    ),
    (
        "litellm.llms.vertex_ai.gemini.transformation",
        "transform_request_body",
        ("messages", "model", "optional_params", "custom_llm_provider", "litellm_params", "cached_content"),
    ),
    (
        "litellm.llms.openai.chat.gpt_transformation",
        "OpenAIChatCompletionStreamingHandler",
        ("streaming_response", "sync_stream"),
    ),
    (
        "litellm.llms.anthropic.chat.handler",
        "ModelResponseIterator",
        ("streaming_response", "sync_stream", "json_mode"),
    ),
    (
        "litellm.llms.vertex_ai.gemini.vertex_and_google_ai_studio_gemini",
        "ModelResponseIterator",
        ("streaming_response", "sync_stream", "logging_obj"),
    ),
    ("litellm.exceptions", "MidStreamFallbackError", ()),
    ("litellm.llms.base_llm.base_model_iterator", "BaseModelResponseIterator._handle_string_chunk", ("str_line",)),
    (
        "litellm.litellm_core_utils.streaming_handler",
        "convert_generic_chunk_to_model_response_stream",
        ("chunk",),
    ),
    (
        "litellm.anthropic_beta_headers_manager",
        "update_request_with_filtered_beta",
        ("headers", "request_data", "provider"),
    ),
)


def test_litellm_is_of_the_version_in_which_its_inner_names_were_seen() -> None:
    assert version("litellm").startswith(f"{litellm_internals.SEEN_IN}."), "look through litellm_internals.py again"


@pytest.mark.parametrize(
    ("module", "name", "parameters"), NAMES, ids=[f"{module.split('.')[-1]}.{name}" for module, name, _ in NAMES]
)
def test_an_inner_name_is_there_and_takes_what_it_is_handed(
    module: str, name: str, parameters: tuple[str, ...]
) -> None:
    load()
    found = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    if parameters:
        assert set(parameters) <= inspect.signature(found).parameters.keys()  # type: ignore[arg-type]


def test_the_cache_of_clients_is_one_that_can_be_emptied() -> None:
    kept = load().in_memory_llm_clients_cache
    assert isinstance(kept.cache_dict, dict)
    assert isinstance(kept.ttl_dict, dict)
