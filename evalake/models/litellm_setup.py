"""LiteLLM, imported late and made quiet: no network at import, no telemetry, no prints, no bookkeeping of its own."""

import logging
import os
import warnings
from functools import cache
from types import ModuleType
from typing import Any

from evalake.core.redaction import RedactionFilter

_LOGGERS = ("LiteLLM", "LiteLLM Proxy", "LiteLLM Router", "openai", "httpx")


@cache
def load() -> ModuleType:
    """Load the configured `litellm` module. The first call imports it, which takes seconds."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else its import fetches the price table
    os.environ["LITELLM_MODE"] = "PRODUCTION"  # else its import reads a .env: of the working directory, or above it
    with warnings.catch_warnings(action="ignore"):
        import litellm as module
    litellm: Any = module
    litellm.telemetry = False
    litellm.suppress_debug_info = True
    litellm.disable_hf_tokenizer_download = True  # tokens are counted by what ships with it, never over the network
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        logger.setLevel(max(logger.level, logging.ERROR))
        for place in (logger, *logger.handlers):
            place.addFilter(RedactionFilter())
    return module


async def warm_up() -> None:
    """Make one call that needs no network, so that no real call is slowed down by what LiteLLM does on its first."""
    with warnings.catch_warnings(action="ignore"):
        await load().acompletion(
            model="openai/warm-up", messages=[{"role": "user", "content": ""}], mock_response="warm"
        )
