"""All uses of LiteLLM's private names, as they are in the version below.

tests/integration/models/test_direct.py and test_streams.py fail where a new version changes one.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from evalake.models.litellm_setup import load

if TYPE_CHECKING:
    import httpx

SEEN_IN = "1.106"
PRICE_FILE = "model_prices_and_context_window_backup.json"  # the price table in LiteLLM's package

Messages = list[dict[str, Any]]


def spare_bookkeeping() -> None:
    """Switch off LiteLLM's pricing and logging for the calls of the current task."""
    from litellm._internal_context import is_internal_call

    is_internal_call.set(True)
    load().response_cost_calculator = lambda **_: None  # type: ignore[attr-defined]  # two or three times each call


async def close_connections() -> None:
    """Close and forget the HTTP clients that LiteLLM keeps for this loop."""
    loop_mark = f"-{id(asyncio.get_running_loop())}"
    kept = load().in_memory_llm_clients_cache
    vars(load()).pop("module_level_aclient", None)  # the client of Claude's streams, which the next loop makes again
    for key in [key for key in kept.cache_dict if key.endswith(loop_mark)]:
        holder = kept.cache_dict.pop(key)
        kept.ttl_dict.pop(key, None)
        for close in (getattr(holder, "close", None), getattr(getattr(holder, "client", None), "aclose", None)):
            if close is not None and asyncio.iscoroutinefunction(close):
                await close()


def provider_class(provider: str, model: str) -> Any:
    """Look up the object that maps a model's requests to its provider's API (`litellm.BaseConfig`)."""
    from litellm.types.utils import LlmProviders
    from litellm.utils import ProviderConfigManager

    return ProviderConfigManager.get_provider_chat_config(model=model, provider=LlmProviders(provider))


def takes_chat(provider: str, model: str, parameters: Mapping[str, Any]) -> bool:
    """Tell whether LiteLLM calls this model by its chat API, and not by OpenAI's Responses API."""
    from litellm.main import responses_api_bridge_check

    information, name = responses_api_bridge_check(
        model=model, custom_llm_provider=provider, reasoning_effort=parameters.get("reasoning_effort")
    )
    return name == model and information.get("mode") != "responses"


def provider_parameters(
    provider: str, model: str, messages: Messages, parameters: Mapping[str, Any], stream: bool | None = None
) -> dict[str, Any]:
    """Map OpenAI's parameters to the provider's; raises LiteLLM's errors for unsupported ones."""
    from litellm.utils import get_optional_params

    mapped: dict[str, Any] = get_optional_params(
        model=model,
        custom_llm_provider=provider,
        messages=messages,  # type: ignore[arg-type]
        max_retries=0,
        stream=stream,
        **parameters,
    )
    mapped.pop("max_retries", None)
    return mapped


def call_parameters(provider: str, api_key: str | None, api_base: str | None) -> dict[str, Any]:
    """Build the further arguments of LiteLLM's provider classes."""
    from litellm.litellm_core_utils.get_litellm_params import get_litellm_params

    return dict(get_litellm_params(api_key=api_key, custom_llm_provider=provider, api_base=api_base, acompletion=True))


def gemini_address(model: str, api_key: str, api_base: str | None, stream: bool) -> str:
    """Build the URL of a Gemini model."""
    from litellm.llms.vertex_ai.gemini.vertex_and_google_ai_studio_gemini import VertexLLM

    _, url = VertexLLM()._get_token_and_url(
        model=model,
        auth_header="",
        gemini_api_key=api_key,
        vertex_project=None,
        vertex_location=None,
        vertex_credentials=None,
        stream=stream,
        custom_llm_provider="gemini",
        api_base=api_base,
    )
    return str(url)


def gemini_body(model: str, messages: Messages, parameters: dict[str, Any], further: dict[str, Any]) -> dict[str, Any]:
    """Build the body of a request to a Gemini model."""
    from litellm.llms.vertex_ai.gemini.transformation import transform_request_body

    return dict(
        transform_request_body(
            messages=messages,  # type: ignore[arg-type]
            model=model,
            optional_params=parameters,
            custom_llm_provider="gemini",
            litellm_params=further,
            cached_content=None,
        )
    )


def anthropic_filtered(headers: dict[str, str], body: dict[str, Any]) -> tuple[dict[str, str], dict[str, Any]]:
    """Remove beta features from headers and body that Anthropic's API refuses."""
    from litellm.anthropic_beta_headers_manager import update_request_with_filtered_beta

    return update_request_with_filtered_beta(headers=headers, request_data=body, provider="anthropic")


def anthropic_pieces(json_mode: bool) -> Any:
    """Create a reader of Anthropic's streams."""
    from litellm.llms.anthropic.chat.handler import ModelResponseIterator

    return ModelResponseIterator(streaming_response=None, sync_stream=True, json_mode=json_mode)


def gemini_pieces() -> Any:
    """Create a reader of Gemini's streams."""
    from litellm.llms.vertex_ai.gemini.vertex_and_google_ai_studio_gemini import ModelResponseIterator

    log: Any = NoLog({})
    return ModelResponseIterator(streaming_response=None, sync_stream=True, logging_obj=log)


def finish_reason(reason: str) -> str:
    """Map a finish reason to OpenAI's words; an unknown one stays."""
    from litellm.litellm_core_utils.core_helpers import _FINISH_REASON_MAP

    return str(_FINISH_REASON_MAP.get(reason, reason))


class Heard:
    """Keeps the body of an answer as LiteLLM received it; LiteLLM calls it as its `logger_fn`."""

    body: Mapping[str, Any] | None = None

    def __call__(self, details: Mapping[str, Any]) -> None:
        """Keep the body, where this is the event of an answer in JSON."""
        said = details.get("original_response")
        if details.get("log_event_type") == "post_api_call" and isinstance(said, str):
            with suppress(ValueError, RecursionError):
                read = json.loads(said)
                self.body = read if isinstance(read, Mapping) else None


def raw_lines(stream: Any) -> AsyncIterator[str] | None:
    """Find the lines of a stream as they come; None where LiteLLM gives no access to them.

    LiteLLM itself takes `[DONE]` for the reason "stop", and leaves out pieces that are not JSON.
    """
    from litellm.llms.anthropic.chat.handler import ModelResponseIterator as Claude
    from litellm.llms.base_llm.base_model_iterator import BaseModelResponseIterator as Plain
    from openai import AsyncStream

    source, lines = stream.completion_stream, None
    if isinstance(source, AsyncStream):
        lines = source.response.aiter_lines()
    elif (
        isinstance(source, Claude) or getattr(type(source), "_handle_string_chunk", None) is Plain._handle_string_chunk
    ):
        lines = source.streaming_response
    return lines


def read_piece(stream: Any, said: Any) -> Any:
    """Read a piece of a stream in its provider's language as LiteLLM's object."""
    from litellm.litellm_core_utils.streaming_handler import convert_generic_chunk_to_model_response_stream as convert

    piece: Any = stream.completion_stream.chunk_parser(said)
    converted: Any = convert
    return converted(piece) if isinstance(piece, dict) else piece


def as_litellm_error(provider: str, model: str, settings: Any, answer: "httpx.Response") -> BaseException:
    """Build LiteLLM's exception for an error answer; its cause holds the answer."""
    import httpx

    error = settings.get_error_class(answer.text, answer.status_code, answer.headers)
    error.__cause__ = httpx.HTTPStatusError(answer.text[:200], request=answer.request, response=answer)
    try:
        mapped = load().exception_type(model=model, custom_llm_provider=provider, original_exception=error)
    except Exception as raised:  # noqa: BLE001 - it raises the exception that it has built
        mapped = raised
    if mapped is not error:
        mapped.__cause__ = error
    return mapped if isinstance(mapped, BaseException) else error


class NoLog:
    """A substitute for the logger of LiteLLM's provider classes."""

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        self.optional_params = parameters
        self.model_call_details: dict[str, Any] = {}

    def pre_call(self, *_: Any, **__: Any) -> None:
        """Do nothing."""

    def post_call(self, *_: Any, **__: Any) -> None:
        """Do nothing."""
