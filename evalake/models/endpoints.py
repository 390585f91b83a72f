"""Endpoints: the servers that answer a model's calls, as the ledger stores them beside the prompt hash."""

import hashlib
import os
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit

from evalake.core.configuration import IN_PROCESS, PROVIDER, UNKNOWN, UNSET, Configuration
from evalake.models import baselines
from evalake.models.key_names import KEYLESS, known_provider, likely_provider
from evalake.models.litellm_setup import load
from evalake.models.trust import OWN_HOSTS, origin_of

# Providers whose servers are their users' own
_OF_USERS = KEYLESS | {
    *("azure", "azure_ai", "azure_text", "custom_openai", "databricks", "docker_model_runner", "litellm_proxy"),
    *("lemonade", "oobabooga", "openai_like", "petals", "triton", "vllm", "xinference"),
}
# LiteLLM's default addresses
_LOCAL = {
    "llamafile": "http://127.0.0.1:8080/v1",
    "ollama": "http://localhost:11434",
    "ollama_chat": "http://localhost:11434",
    "xinference": "http://127.0.0.1:9997/v1",
}
_ENDINGS = ("API_BASE", "BASE_URL")  # of the variables with addresses; LiteLLM reads the first that is set
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The endpoint of a model's calls, and whether replies of an unknown endpoint answer them, too."""

    name: str
    adopts_unknown: bool

    @property
    def answering(self) -> tuple[str, ...]:
        """The endpoints whose replies answer a call, the preferred one first."""
        return (self.name, UNKNOWN) if self.adopts_unknown else (self.name,)


def endpoint_of(model: str, configuration: Configuration) -> Endpoint:
    """Find the endpoint of a real model: its declared name, else its address, else its provider."""
    if model.startswith(f"{baselines.PROVIDER}/"):
        return Endpoint(IN_PROCESS, adopts_unknown=True)
    options, provider = configuration.model(model), _provider_of(model)
    name = options.endpoint or configuration.limits(provider).endpoint
    name = name or _address(options.api_base or _base_of(provider), provider)
    return Endpoint(name, options.adopt_unknown_endpoint or name == PROVIDER)


def endpoint_at(model: str, address: str | None) -> str:
    """Name the endpoint of a call that another tool made to this address; None is the provider's own."""
    return _address(address, _provider_of(model))


def _base_of(provider: str) -> str | None:
    """Find a provider's address in the environment, else LiteLLM's default for local servers."""
    prefixes = dict.fromkeys((provider.upper(), provider.upper().replace("_", ""), provider.upper().split("_")[0]))
    endings = _ENDINGS[::-1] if provider == "openai" else _ENDINGS
    names = (f"{prefix}_{ending}" for prefix in prefixes for ending in endings)
    return next(filter(None, map(os.environ.get, names)), None) or _LOCAL.get(provider)


@lru_cache(maxsize=256)
def _address(base: str | None, provider: str) -> str:
    """Write an address as an endpoint: its origin and a hash of its path, without keys."""
    if base is None:
        return UNSET if provider in _OF_USERS else PROVIDER
    if origin_of(base) == origin_of(OWN_HOSTS.get(provider, "")):
        return PROVIDER
    try:
        parts = urlsplit(base.strip())
        scheme, host, port, path = parts.scheme.lower(), parts.hostname or "", parts.port, parts.path.rstrip("/")
    except ValueError:
        return f"://#{_short(base)}"
    host = f"[{host}]" if ":" in host else host
    origin = f"{scheme}://{host}" + ("" if port in (None, _PORTS.get(scheme)) else f":{port}")
    return f"{origin}#{_short(path)}" if path else origin


def _short(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


@lru_cache(maxsize=256)
def _provider_of(model: str) -> str:
    """Find the provider of a model. Only a name without a provider needs LiteLLM, whose import takes seconds."""
    if known := known_provider(model) or likely_provider(model):
        return known
    before, slash, _ = model.partition("/")
    if slash:
        return before
    with suppress(Exception):  # imported results may have unknown names
        return str(load().get_llm_provider(model)[1])
    return ""
