"""Finds which of a suite's wished parameters a model supports, by LiteLLM."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from evalake.models import litellm_internals as internals
from evalake.models.cost import BASELINE_PREFIX
from evalake.models.litellm_setup import load

# A model may refuse a temperature beside one of these
_SAMPLING = frozenset({"temperature", "top_p", "top_k", "reasoning_effort", "thinking"})


def taken(model: str, wished: Mapping[str, float], configured: Mapping[str, Any]) -> dict[str, float]:
    """List the wished parameters that the model supports and the configuration does not set.

    A temperature is left out where the configuration sets any parameter of sampling or reasoning. Baselines and models
    of unknown providers support none.
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
    except litellm.BadRequestError:  # an unsupported parameter or an unknown provider
        return False
    return True
