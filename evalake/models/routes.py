"""Routes to models: provider, key and API base, found and checked before any call."""

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from evalake.contracts.contract import fits_folder
from evalake.core.configuration import Configuration, ModelOptions, Price
from evalake.core.errors import MissingKeyError, ProviderError, did_you_mean
from evalake.core.redaction import KnownKeys, redact, treat_as_key, treat_as_secret
from evalake.models import endpoints
from evalake.models.litellm_internals import load
from evalake.models.request import ANSWERED_HERE, BASELINE, FUNCTION, Baseline, absent

ReadSecret = Callable[[str], str]
"""Reads a secret by its name; raises ProviderError where it cannot."""

NO_BASELINES: Mapping[str, Baseline] = MappingProxyType({})

_KEY_SUFFIX = "_API_KEY"
_NO_KEY = "no-key-needed"  # for local servers, because clients always send one

# The parameters that only the client sets
CLIENT_OWNED = frozenset({
    *("api_base", "api_key", "base_url", "custom_llm_provider", "fallbacks", "max_retries", "messages"),
    *("mock_response", "model", "num_retries", "stream", "timeout"),
})  # fmt: skip


@dataclass(frozen=True)
class Route:
    """The route to one model."""

    model: str
    provider: str
    arguments: Mapping[str, Any] = field(repr=False)  # of every call: API base and key, instead of LiteLLM's own
    price: Price | None
    baseline: Baseline | None = None  # answers in this process


class Routes:
    """The routes found so far, and their keys. Safe for threads."""

    def __init__(
        self, configuration: Configuration, read_secret: ReadSecret, baselines: Mapping[str, Baseline]
    ) -> None:
        self._configuration, self._read_secret, self._baselines = configuration, read_secret, baselines
        self.found: dict[str, Route] = {}
        """By model."""
        self._finding = threading.Lock()  # so that concurrent first calls read a secret once
        self.keys = KnownKeys()

    def find(self, model: str) -> Route:
        """Find the route to a model, as `find_route` does."""
        with self._finding:
            if model not in self.found:
                self.found[model] = find_route(model, self._configuration, self._read_secret, self._baselines)
                self.keys = KnownKeys()  # with the key of this route
            return self.found[model]


def no_secrets(name: str) -> str:
    """Raise ProviderError, as the reader of secrets outside of flows."""
    raise ProviderError(f"the key is in the secret {name}, which only a Prefect flow can read: run it as a flow")


def find_route(
    model: str,
    configuration: Configuration,
    read_secret: ReadSecret = no_secrets,
    baselines: Mapping[str, Baseline] = NO_BASELINES,
) -> Route:
    """Find the route to `model` or to the real model of a variant.

    Reads the environment, and the provider's secret where the configuration names one. Raises ProviderError where the
    provider or the baseline is unknown, the key is missing, or an untrusted file would send a key elsewhere.
    """
    options = configuration.model(model)
    owned = sorted(CLIENT_OWNED & options.parameters.keys())
    if owned:
        raise ProviderError(f"model {model}: its parameters cannot set {', '.join(owned)}, which evalake sets")
    if redact(parameters := str(options.parameters)) != parameters:
        raise ProviderError(f"model {model}: its parameters hold a key, which every request would store")
    if not fits_folder(model):
        raise ProviderError(f"model {model[:60]}…: the name is too long for the lake")
    endpoints.require_harmless_parameters(model, configuration)
    if options.model is not None:
        return find_route(options.model, configuration, read_secret, baselines)
    if model.startswith(f"{BASELINE}/"):
        if (baseline := baselines.get(model.removeprefix(f"{BASELINE}/"))) is None:
            names = _names(baselines)
            known = did_you_mean(model, names) or f": choose one of {', '.join(names) or 'none'}"
            raise ProviderError(f"no baseline is called {model}{known}")
        return Route(model, BASELINE, {}, None, baseline)
    if model.startswith(f"{FUNCTION}/"):
        return Route(model, FUNCTION, {}, None, baselines.get(model, absent))
    provider = _provider_of(model, options, baselines)
    endpoints.require_trust(model, provider, configuration)
    secret = configuration.limits(provider).api_key_secret
    if not configuration.trusted and endpoints.sends_elsewhere(provider, options):
        key: str | None = _NO_KEY
    elif secret and options.api_key_env is None:
        key = _secret(secret, read_secret)
    else:
        key = _key(model, provider, options)
    arguments = {"api_key": key, "api_base": options.api_base}
    given = {name: value for name, value in arguments.items() if value is not None}
    return Route(model, provider, given, options.price)


def require_usual_keys(models: Sequence[str], configuration: Configuration) -> None:
    """Raise ProviderError where a model's usual key is missing: a quick check without LiteLLM, before `find_route`."""
    for model in models:
        real = configuration.real_model(model)
        provider = endpoints.known_provider(real) or endpoints.likely_provider(real)
        if provider and endpoints.missing_variables(provider) and not configuration.limits(provider).api_key_secret:
            find_route(model, configuration)


def _provider_of(model: str, options: ModelOptions, baselines: Mapping[str, Baseline]) -> str:
    """Find the provider of a model, by LiteLLM only where the tables do not have it."""
    if known := endpoints.known_provider(model):
        return known
    likely = endpoints.likely_provider(model)
    is_usual = options.api_key_env is None and options.api_base is None
    if likely and is_usual and (missing := endpoints.missing_variables(likely)):
        raise _no_key(model, missing)
    litellm = load()
    try:
        name, provider, *_ = litellm.get_llm_provider(model)
    except litellm.BadRequestError as error:
        raise ProviderError(
            f"model {model!r} names no known provider: write it as LiteLLM does, like openai/gpt-4o-mini"
            + did_you_mean(f"{BASELINE}/{model}", _names(baselines))
        ) from error
    if not name or not provider:
        raise ProviderError(f"model {model!r} names a provider but no model")
    return str(provider)


def _names(baselines: Mapping[str, Baseline]) -> list[str]:
    return [f"{BASELINE}/{name}" for name in baselines if not name.startswith(ANSWERED_HERE)]


def _secret(name: str, read_secret: ReadSecret) -> str:
    key = read_secret(name).strip()
    if not key:
        raise ProviderError(f"the secret {name} is empty: put the key into it")
    treat_as_secret(key)
    return key


def _key(model: str, provider: str, options: ModelOptions) -> str | None:
    """Find the key to send; None where LiteLLM finds it or needs none."""
    if options.api_key_env is not None:
        treat_as_key(options.api_key_env)
        if key := os.environ.get(options.api_key_env, "").strip():
            return key
        raise _no_key(model, [options.api_key_env])
    if not (missing := _missing_variables(model, provider)):
        return None
    if options.api_base is None:
        raise _no_key(model, missing)
    return _NO_KEY


def _no_key(model: str, variables: Sequence[str]) -> MissingKeyError:
    return MissingKeyError(f"model {model} needs a key: set {' or '.join(variables)}")


def _missing_variables(model: str, provider: str) -> Sequence[str]:
    """List the unset or blank key variables that LiteLLM would read; it finds other credentials itself."""
    if provider in endpoints.KEY_VARIABLES or provider in endpoints.KEYLESS:
        return endpoints.missing_variables(provider)
    usual = f"{provider.upper()}{_KEY_SUFFIX}"
    missing: list[str] = load().validate_environment(model)["missing_keys"]
    if not missing and usual in os.environ:
        missing = [usual]  # LiteLLM counts a blank variable as set
    # Where one of several variables is missing, LiteLLM lists all of them
    return [name for name in missing if name.endswith(_KEY_SUFFIX) and not os.environ.get(name, "").strip()]
