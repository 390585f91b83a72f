"""The environment variables of providers' keys, so that a missing key is found without importing LiteLLM."""

import os
import re
from collections.abc import Mapping

_BY_THEIR_NAME = ("anthropic", "cerebras", "deepinfra", "deepseek", "groq", "mistral", "nvidia_nim", "openai", "xai")
# The first that is set counts, as in LiteLLM; a test compares. For other providers, LiteLLM is asked.
KEY_VARIABLES: Mapping[str, tuple[str, ...]] = {
    **{name: (f"{name.upper()}_API_KEY",) for name in _BY_THEIR_NAME},
    "azure": ("AZURE_OPENAI_API_KEY", "AZURE_API_KEY"),
    "cohere": ("COHERE_API_KEY", "CO_API_KEY"),
    "gemini": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "openrouter": ("OPENROUTER_API_KEY", "OR_API_KEY"),
    "together_ai": ("TOGETHER_API_KEY", "TOGETHER_AI_API_KEY", "TOGETHERAI_API_KEY", "TOGETHER_AI_TOKEN"),
}
# Providers without keys, or with keys elsewhere
KEYLESS = frozenset({"hosted_vllm", "llamafile", "lm_studio", "ollama", "ollama_chat"})

# Names that LiteLLM knows without a provider
_BARE = (
    (re.compile(r"(?:gpt-|chatgpt-|o\d)[\w.-]*"), "openai"),
    (re.compile(r"claude-[\w.-]*"), "anthropic"),
)


def known_provider(model: str) -> str | None:
    """Read the provider before the slash, if it is in the table; else None, and LiteLLM has to be asked."""
    provider, slash, name = model.partition("/")
    return provider if slash and name and (provider in KEY_VARIABLES or provider in KEYLESS) else None


def likely_provider(model: str) -> str | None:
    """Guess the provider of a name by its beginning, before LiteLLM decides."""
    return next((provider for pattern, provider in _BARE if pattern.fullmatch(model)), None)


def key_of(provider: str) -> str | None:
    """Look up the provider's key in the environment; None without one."""
    values = (os.environ.get(name, "").strip() for name in KEY_VARIABLES.get(provider, ()))
    return next(filter(None, values), None)


def missing_variables(provider: str) -> tuple[str, ...]:
    """List the variables of which one has to be set; empty where a key is set or none is needed."""
    return () if key_of(provider) else KEY_VARIABLES.get(provider, ())
