"""The way to one model: its provider, key and API base, found and checked before anything is called."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from contracts.configuration import Configuration, ModelOptions, Price
from contracts.contract import fits_folder
from contracts.errors import ProviderError
from providers.baselines.registry import BASELINES
from providers.litellm_setup import load
from providers.redaction import redact, treat_as_key, treat_as_secret

ReadSecret = Callable[[str], str]
"""Gives the value of the secret with a name; raises ProviderError where it cannot."""

_KEY_SUFFIX = "_API_KEY"
_NO_KEY = "no-key-needed"  # a local server asks for none, but clients insist on sending one

# What a request's parameters may not set, because the client itself decides it.
CLIENT_OWNED = frozenset(
    {
        "api_base",
        "api_key",
        "base_url",
        "custom_llm_provider",
        "fallbacks",
        "max_retries",
        "messages",
        "mock_response",
        "model",
        "num_retries",
        "stream",
        "timeout",
    }
)


@dataclass(frozen=True)
class Route:
    """How one model is reached."""

    model: str
    provider: str
    # For every call: API base and key, where LiteLLM's own do not do
    arguments: Mapping[str, Any] = field(repr=False)
    price: Price | None


def no_secrets(name: str) -> str:
    """The reader of secrets where there is none."""
    raise ProviderError(f"the key is in the secret {name}, and nobody here can read secrets: run it as a Prefect flow")


def find_route(model: str, configuration: Configuration, read_secret: ReadSecret = no_secrets) -> Route:
    """The route to `model`. Reads the environment, and a secret where the configuration names one for the provider.

    Raises ProviderError where the provider is unknown, the key is missing, or the baseline does not exist.
    """
    options = configuration.model(model)
    owned = sorted(CLIENT_OWNED & options.parameters.keys())
    if owned:
        raise ProviderError(f"model {model}: its parameters cannot set {', '.join(owned)}, which is evalake's part")
    if redact(parameters := str(options.parameters)) != parameters:
        raise ProviderError(f"model {model}: its parameters hold a key, and would be stored with every request")
    if not fits_folder(model):
        raise ProviderError(f"model {model[:60]}…: the name is too long to be kept")
    provider, name = _provider_of(model)
    if provider == "baseline":
        if name not in BASELINES:
            known = ", ".join(f"baseline/{known}" for known in BASELINES)
            raise ProviderError(f"no baseline is called {model}; there are {known}")
        return Route(model, provider, {}, None)
    secret = configuration.limits(provider).api_key_secret
    key = _secret(secret, read_secret) if secret and options.api_key_env is None else _key(model, provider, options)
    arguments = {"api_key": key, "api_base": options.api_base}
    given = {name: value for name, value in arguments.items() if value is not None}
    return Route(model, provider, given, options.price)


def _provider_of(model: str) -> tuple[str, str]:
    litellm = load()
    try:
        name, provider, *_ = litellm.get_llm_provider(model)
    except litellm.BadRequestError as error:
        raise ProviderError(
            f"model {model!r} names no known provider: write it as LiteLLM does, such as openai/gpt-4o-mini"
        ) from error
    if not name or not provider:
        raise ProviderError(f"model {model!r} names a provider but no model")
    return str(provider), str(name)


def _secret(name: str, read_secret: ReadSecret) -> str:
    key = read_secret(name).strip()
    if not key:
        raise ProviderError(f"the secret {name} is empty: put the key into it")
    treat_as_secret(key)
    return key


def _key(model: str, provider: str, options: ModelOptions) -> str | None:
    """The key to send; None where LiteLLM finds the usual one itself, or needs none."""
    if options.api_key_env is not None:
        treat_as_key(options.api_key_env)
        key = os.environ.get(options.api_key_env, "").strip()
        if not key:
            raise ProviderError(f"model {model} needs a key: set {options.api_key_env}")
        return key
    missing = _missing_variables(model, provider)
    if not missing:
        return None
    if options.api_base is not None:
        return _NO_KEY
    raise ProviderError(f"model {model} needs a key: set {' or '.join(missing)}")


def _missing_variables(model: str, provider: str) -> list[str]:
    """The key variables that LiteLLM would read and that are not set or blank; other credentials it finds alone."""
    usual = f"{provider.upper()}{_KEY_SUFFIX}"
    missing: list[str] = load().validate_environment(model)["missing_keys"]
    if not missing and usual in os.environ:
        missing = [usual]  # set but blank counts as present there
    # Of a provider that needs more than a key, all its variables count as missing there as soon as one is.
    return [name for name in missing if name.endswith(_KEY_SUFFIX) and not os.environ.get(name, "").strip()]
