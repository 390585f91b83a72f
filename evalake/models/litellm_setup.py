"""Imports LiteLLM late, without network access, telemetry and prints."""

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
