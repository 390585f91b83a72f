"""LiteLLM, imported late and made quiet: no network at import, no telemetry, no prints, no bookkeeping of its own."""

import logging
import os
import warnings
from functools import cache
from types import ModuleType
from typing import Any

from providers.redaction import RedactionFilter

_LOGGERS = ("LiteLLM", "LiteLLM Proxy", "LiteLLM Router", "openai", "httpx")


@cache
def load() -> ModuleType:
    """The configured `litellm` module. The first call imports it, which takes seconds."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else its import fetches the price table
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import litellm as module
    litellm: Any = module
    litellm.telemetry = False
    litellm.suppress_debug_info = True
    # evalake prices a reply itself, once, and knows "unknown"; LiteLLM would do it two or three times for every call.
    litellm.response_cost_calculator = _no_cost
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        logger.setLevel(max(logger.level, logging.ERROR))
        for place in (logger, *logger.handlers):
            place.addFilter(RedactionFilter())
    _register_baselines(litellm)
    return module


async def warm_up() -> None:
    """Make one call that needs no network, so that no real call is slowed down by what LiteLLM does on its first."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        await load().acompletion(model="baseline/always-allow", messages=[{"role": "user", "content": ""}])


def skip_bookkeeping() -> None:
    """Spare the calls of the current task LiteLLM's success and failure logging, which here has nobody to tell."""
    from litellm._internal_context import is_internal_call

    is_internal_call.set(True)


def _no_cost(**_: Any) -> None:
    return None


def _register_baselines(litellm: Any) -> None:
    from providers.baselines.handler import PROVIDER, make_handler

    litellm.custom_provider_map = [{"provider": PROVIDER, "custom_handler": make_handler()}]
    litellm.utils.custom_llm_setup()
