"""Imports LiteLLM late, without network access, telemetry and prints; and all uses of its private names.

They are as in the version below. tests/integration/models/test_direct.py fails where a new version changes one.
"""

import logging
import os
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from types import ModuleType
from typing import Any

from evalake.core.redaction import RedactionFilter

SEEN_IN = "1.106"
PRICE_FILE = "model_prices_and_context_window_backup.json"  # the price table in LiteLLM's package

Messages = list[dict[str, Any]]

_LOGGERS = ("LiteLLM", "LiteLLM Proxy", "LiteLLM Router", "openai", "httpx")


@cache
def load() -> ModuleType:
    """Load the configured `litellm` module. The first call imports it, which takes seconds."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else the import fetches the price table
    os.environ["LITELLM_MODE"] = "PRODUCTION"  # else the import reads .env of the working directory or above
    with warnings.catch_warnings(action="ignore"):
        import litellm as module
    # A cancelled call leaves a coroutine that a helper thread has built for it
    warnings.filterwarnings("ignore", "coroutine '.*completion.*' was never awaited", RuntimeWarning)
    warnings.filterwarnings("ignore", "Items? .* the `ReadOnly` qualifier", UserWarning)  # of its own classes
    litellm: Any = module
    litellm.telemetry = False
    litellm.suppress_debug_info = True
    litellm.disable_hf_tokenizer_download = True  # so that token counting needs no network
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        logger.setLevel(max(logger.level, logging.ERROR))
        for place in (logger, *logger.handlers):
            place.addFilter(RedactionFilter())
    return module


def spare_bookkeeping() -> None:
    """Switch off LiteLLM's pricing and logging for the calls of the current task."""
    from litellm._internal_context import is_internal_call

    is_internal_call.set(True)
    load().response_cost_calculator = lambda **_: None  # type: ignore[attr-defined]  # two or three times each call


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


def finish_reason(reason: str) -> str:
    """Map a finish reason to OpenAI's words; an unknown one stays."""
    from litellm.litellm_core_utils.core_helpers import _FINISH_REASON_MAP

    return str(_FINISH_REASON_MAP.get(reason, reason))


def reader_of_pieces(stream: Any) -> Callable[[Any], Any] | None:
    """Return what reads a piece of a stream as LiteLLM's object; None where LiteLLM reads no single pieces."""
    from litellm.litellm_core_utils.streaming_handler import convert_generic_chunk_to_model_response_stream as convert

    converted: Any = convert
    if (parse := getattr(getattr(stream, "completion_stream", None), "chunk_parser", None)) is None:
        return None

    def read(said: Any) -> Any:
        piece = parse(said)
        return converted(piece) if isinstance(piece, dict) else piece

    return read


def is_beyond_context(words: str) -> bool:
    """Tell whether LiteLLM knows a provider's words for a context that is too long."""
    from litellm.litellm_core_utils.exception_mapping_utils import ExceptionCheckers

    return ExceptionCheckers.is_error_str_context_window_exceeded(words)
