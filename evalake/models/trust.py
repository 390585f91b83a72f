"""Limits an untrusted configuration, found in the working directory, in its use of the user's keys and money.

It may name servers and their models. But no key of the environment goes to another host than the provider's, and no
call costs more than without the file.
"""

import os
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from evalake.core.configuration import TRUST_OPTION, Configuration, ModelOptions
from evalake.core.errors import ProviderError
from evalake.models.cost import entry_of
from evalake.models.key_names import KEY_VARIABLES, KEYLESS

# Without Azure, whose hosts belong to its customers
OWN_HOSTS: Mapping[str, str] = {
    "anthropic": "https://api.anthropic.com",
    "cerebras": "https://api.cerebras.ai",
    "cohere": "https://api.cohere.com",
    "deepinfra": "https://api.deepinfra.com",
    "deepseek": "https://api.deepseek.com",
    "gemini": "https://generativelanguage.googleapis.com",
    "groq": "https://api.groq.com",
    "mistral": "https://api.mistral.ai",
    "nvidia_nim": "https://integrate.api.nvidia.com",
    "openai": "https://api.openai.com",
    "openrouter": "https://openrouter.ai",
    "together_ai": "https://api.together.xyz",
    "xai": "https://api.x.ai",
}

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
    own = [OWN_HOSTS.get(provider), *(os.environ.get(f"{_prefix(provider)}_{end}") for end in ("API_BASE", "BASE_URL"))]
    return origin_of(options.api_base) not in {origin_of(base) for base in own if base}


def require_harmless_parameters(model: str, configuration: Configuration) -> None:
    """Raise ProviderError where an untrusted file sets a price, redirects a priced model, or sets a risky parameter."""
    if configuration.trusted:
        return
    options = configuration.model(model)
    if unknown := sorted(_parameters(options.parameters) - HARMLESS_PARAMETERS):
        raise _distrusted(model, configuration, f"sets the parameter {unknown[0]}")
    if options.price is not None:
        raise _distrusted(model, configuration, "sets a price, on which the cost ceiling depends")
    if options.model not in (None, model) and entry_of(model) is not None:
        raise _distrusted(model, configuration, f"replaces it by {options.model}")


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


def _prefix(provider: str) -> str:
    """Compute the prefix of the provider's variables, like TOGETHER of together_ai."""
    return provider.upper().split("_")[0]


def origin_of(base: str) -> tuple[str, str | None, int | None]:
    """Read scheme, host and port of an address; an invalid address is returned whole."""
    try:
        parts = urlsplit(base)
        return parts.scheme, parts.hostname, parts.port or {"https": 443, "http": 80}.get(parts.scheme)
    except ValueError:
        return base, None, None


def _distrusted(model: str, configuration: Configuration, what: str) -> ProviderError:
    file = configuration.distrusted_file
    return ProviderError(
        f"model {model}: {file} of the working directory {what}; if you trust this folder, give {TRUST_OPTION} or "
        f"--config {file}"
    )
