"""The wished parameters that a model takes: those that LiteLLM lets through."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from evalake.models import litellm_internals as internals
from evalake.models.cost import BASELINE_PREFIX
from evalake.models.litellm_setup import load

# Reasoning models refuse a temperature while they reason, and some models one beside another of these.
_SAMPLING = frozenset({"temperature", "top_p", "top_k", "reasoning_effort", "thinking"})


def taken(model: str, wished: Mapping[str, float], configured: Mapping[str, Any]) -> dict[str, float]:
    """List the wished parameters that the model takes and the configuration leaves open.

    A temperature is left open only where nothing is configured of how the model samples or reasons. A rule-based
    model takes none, nor does a model of an unknown provider.

    Args:
        model: The real model, as LiteLLM names it.
        wished: What it would be asked with.
        configured: What it is asked with anyway.
    """
    if model.startswith(BASELINE_PREFIX):
        return {}
    open_ = {name: value for name, value in wished.items() if name not in configured}
    if _SAMPLING & configured.keys():
        open_.pop("temperature", None)
    return {name: value for name, value in open_.items() if _takes(model, name, value)}


@lru_cache(maxsize=1024)
def _takes(model: str, parameter: str, value: float) -> bool:
    litellm = load()
    try:
        name, provider, *_ = litellm.get_llm_provider(model)
        internals.provider_parameters(provider, name, [{"role": "user", "content": ""}], {parameter: value})
    except litellm.BadRequestError:  # which unsupported parameters and unknown providers are
        return False
    return True
