"""Endpoints: the servers that answer a model's calls, as the ledger stores them, and the keys that go there.

A configuration found in the working directory is not trusted. It may name servers and their models; but no key of the
environment goes to another host than the provider's, and no call costs more than without the file.
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from evalake.core.configuration import IN_PROCESS, PROVIDER, TRUST_OPTION, UNKNOWN, UNSET, Configuration, ModelOptions
from evalake.core.errors import ProviderError
from evalake.core.files import tables_beside
from evalake.core.hashing import short_hash
from evalake.models.cost import entry_of
from evalake.models.litellm_internals import load
from evalake.models.request import ANSWERED_HERE

# What is known without importing LiteLLM, so that a missing key is found at once
KNOWN = tables_beside(__file__, "providers.toml")
# The first variable that is set counts, as in LiteLLM; a test compares. For other providers, LiteLLM is asked.
KEY_VARIABLES: Mapping[str, tuple[str, ...]] = {
    name: tuple(known["keys"]) for name, known in KNOWN.items() if "keys" in known
}
KEYLESS = frozenset(name for name, known in KNOWN.items() if "is_keyless" in known)
_OF_USERS = KEYLESS | {name for name, known in KNOWN.items() if "of_users" in known}

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
    """List the variables, one of them required; empty where a key is set or none is needed."""
    return () if key_of(provider) else KEY_VARIABLES.get(provider, ())


BODY = "extra_body"  # its fields are sent like parameters
# Any other parameter may name an address or a file to LiteLLM, or multiply the cost: more replies, longer ones, more
# reasoning, a header that changes the price
HARMLESS_PARAMETERS = frozenset({
    *("frequency_penalty", "presence_penalty", "response_format", "seed", "stop", "temperature", "top_k", "top_p"),
    "user",
})  # fmt: skip
_CREDENTIAL = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL|AUTH|HEADERS")
_ONLY_KEYS = (KEY_VARIABLES.keys() | KEYLESS) - {"azure"}  # providers without other credentials


def sends_elsewhere(provider: str, options: ModelOptions) -> bool:
    """Tell whether the model's host is neither the provider's own nor the environment's."""
    if options.api_base is None:
        return False
    own = [_own_host(provider), *(os.environ.get(f"{_prefix(provider)}_{end}") for end in _ENDINGS)]
    return origin_of(options.api_base) not in {origin_of(base) for base in own if base}


def require_harmless_parameters(model: str, configuration: Configuration) -> None:
    """Raise ProviderError where an untrusted file sets a price or what costs more, or redirects a priced model."""
    if configuration.trusted:
        return
    options = configuration.model(model)
    if unknown := sorted(_parameters(options.parameters) - HARMLESS_PARAMETERS):
        raise _distrusted(model, configuration, f"sets the parameter {unknown[0]}")
    if costly := next(_costly(options), None):
        raise _distrusted(model, configuration, f"sets {costly}, by which calls may cost more")
    if options.price is not None:
        raise _distrusted(model, configuration, "sets a price, on which the cost ceiling depends")
    has_price = model.startswith(ANSWERED_HERE) or entry_of(model) is not None
    if options.model not in (None, model) and has_price:
        raise _distrusted(model, configuration, f"replaces it by {options.model}")


def _costly(options: ModelOptions) -> Iterator[str]:
    """Yield the options that may make calls cost more."""
    if options.fallbacks:
        yield "fallbacks"
    if options.cache_prompt is not None:  # cache writes cost a quarter more, and cached input a tenth
        yield "cache_prompt"
    if options.batch is False:  # a call costs twice its price in a job
        yield "batch"
    if not options.suite_parameters:  # which may limit replies
        yield "suite_parameters"


def _parameters(given: Mapping[str, Any]) -> set[str]:
    """List the names of parameters, with those inside the body of a request."""
    body = given.get(BODY)
    return {*given} - {BODY} | _parameters(body) if isinstance(body, Mapping) else {*given}


def require_trust(model: str, provider: str, configuration: Configuration) -> None:
    """Raise ProviderError where an untrusted configuration would send a credential."""
    if configuration.trusted:
        return
    options = configuration.model(model)
    require_harmless_parameters(model, configuration)
    if "://" in model:  # some providers read the address from the model's name
        raise _distrusted(
            model, configuration, "is in use, and a model with an address in its name may send keys there"
        )
    if sends_elsewhere(provider, options):
        if credential := _credential(provider, configuration, options):
            host = urlsplit(options.api_base or "").hostname or "another host"
            raise _distrusted(model, configuration, f"sends it to {host[:100]}, and {credential} would go there")
    elif options.api_key_env is not None and not options.api_key_env.upper().startswith(_prefix(provider)):
        raise _distrusted(model, configuration, f"sends {options.api_key_env} to {provider} as its key")


def _credential(provider: str, configuration: Configuration, options: ModelOptions) -> str | None:
    """Name a credential that a call could send; None without one."""
    if options.api_key_env is not None:
        return options.api_key_env
    if secret := configuration.limits(provider).api_key_secret:
        return f"the secret {secret}"
    if provider not in _ONLY_KEYS:
        return f"what LiteLLM finds for {provider}"
    keys, beginning = KEY_VARIABLES.get(provider, ()), _prefix(provider)
    for name in sorted(name for name in os.environ if os.environ[name].strip()):
        if name in keys or (name.startswith(beginning) and _CREDENTIAL.search(name)):
            return name
    return None


def _own_host(provider: str) -> str:
    return str(KNOWN.get(provider, {}).get("host", ""))


def _prefix(provider: str) -> str:
    """Compute the prefix of the provider's variables, like TOGETHER of together_ai."""
    return provider.upper().split("_")[0]


def origin_of(base: str) -> tuple[str, str | None, int | None]:
    """Read scheme, host and port of an address; an invalid address is returned whole."""
    try:
        parts = urlsplit(base)
        return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return base, None, None


def _distrusted(model: str, configuration: Configuration, what: str) -> ProviderError:
    file = configuration.distrusted_file
    return ProviderError(
        f"model {model}: {file} of the working directory {what}; if you trust this folder, give {TRUST_OPTION} or "
        f"--config {file}"
    )


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
    if model.startswith(ANSWERED_HERE):
        return Endpoint(IN_PROCESS, adopts_unknown=True)
    options, provider = configuration.model(model), provider_of(model)
    name = options.endpoint or configuration.limits(provider).endpoint
    name = name or _address(options.api_base or _base_of(provider), provider)
    return Endpoint(name, options.adopt_unknown_endpoint or name == PROVIDER)


def endpoint_at(model: str, address: str | None) -> str:
    """Name the endpoint of a call that another tool made to this address; None is the provider's own."""
    return _address(address, provider_of(model))


def _base_of(provider: str) -> str | None:
    """Find a provider's address in the environment, else LiteLLM's default for local servers."""
    prefixes = dict.fromkeys((provider.upper(), provider.upper().replace("_", ""), provider.upper().split("_")[0]))
    endings = _ENDINGS[::-1] if provider == "openai" else _ENDINGS
    names = (f"{prefix}_{ending}" for prefix in prefixes for ending in endings)
    return next(filter(None, map(os.environ.get, names)), None) or KNOWN.get(provider, {}).get("default")


@lru_cache(maxsize=256)
def _address(base: str | None, provider: str) -> str:
    """Write an address as an endpoint: its origin and a hash of its path, without keys."""
    if base is None:
        return UNSET if provider in _OF_USERS else PROVIDER
    if origin_of(base) == origin_of(_own_host(provider)):
        return PROVIDER
    try:
        parts = urlsplit(base.strip())
        scheme, host, port, path = parts.scheme.lower(), parts.hostname or "", parts.port, parts.path.rstrip("/")
    except ValueError:
        return f"://#{short_hash(base)}"
    host = f"[{host}]" if ":" in host else host
    origin = f"{scheme}://{host}" + ("" if port in (None, _PORTS.get(scheme)) else f":{port}")
    return f"{origin}#{short_hash(path)}" if path else origin


@lru_cache(maxsize=256)
def provider_of(model: str) -> str:
    """Find the provider of a model. Only a name without a provider needs LiteLLM, whose import takes seconds."""
    if known := known_provider(model) or likely_provider(model):
        return known
    before, slash, _ = model.partition("/")
    if slash:
        return before
    with suppress(Exception):  # imported results may have unknown names
        return str(load().get_llm_provider(model)[1])
    return ""
