"""What a configuration that merely lay in the working directory may not do with the keys and the money of its user.

It may name servers, and models there, but no key of the environment goes to another host than the provider's own,
and no call costs more than it would without the file.
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

# Azure's hosts are their customers', so none of them is the provider's own.
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

# Every other parameter may be one by which LiteLLM is told where to send something, or which file to read; or one that
# makes a call cost many times as much: more or longer replies, more thought, a header that changes the price.
BODY = "extra_body"  # whose fields are sent as parameters are
HARMLESS_PARAMETERS = frozenset(
    {
        "frequency_penalty",
        "presence_penalty",
        "response_format",
        "seed",
        "stop",
        "temperature",
        "top_k",
        "top_p",
        "user",
    }
)
_CREDENTIAL = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL|AUTH|HEADERS")
_ONLY_KEYS = (KEY_VARIABLES.keys() | KEYLESS) - {"azure"}  # providers that are sent nothing but a key


def sends_elsewhere(provider: str, options: ModelOptions) -> bool:
    """Tell whether the model is asked at another host than the provider's own, or the one the environment names."""
    if options.api_base is None:
        return False
    own = [OWN_HOSTS.get(provider), *(os.environ.get(f"{_prefix(provider)}_{end}") for end in ("API_BASE", "BASE_URL"))]
    return place(options.api_base) not in {place(base) for base in own if base}


def require_harmless_parameters(model: str, configuration: Configuration) -> None:
    """Raise ProviderError where a file that the user did not name sets what may send keys elsewhere or cost more.

    That is a price, by which a ceiling is kept; another model behind the name of one that has a price; and every
    parameter that is not known to do neither.
    """
    if configuration.trusted:
        return
    options = configuration.model(model)
    if unknown := sorted(_parameters(options.parameters) - HARMLESS_PARAMETERS):
        raise _distrusted(model, configuration, f"sets the parameter {unknown[0]}")
    if options.price is not None:
        raise _distrusted(model, configuration, "sets a price, by which the ceiling on cost is kept")
    if options.model not in (None, model) and entry_of(model) is not None:
        raise _distrusted(model, configuration, f"puts {options.model} in its place")


def _parameters(given: Mapping[str, Any]) -> set[str]:
    """List the names of parameters, and those that the body of a request is given beside them."""
    body = given.get(BODY)
    return {*given} - {BODY} | _parameters(body) if isinstance(body, Mapping) else {*given}


def require_trust(model: str, provider: str, configuration: Configuration) -> None:
    """Raise ProviderError where the model would be sent what only a configuration that the user named may send."""
    if configuration.trusted:
        return
    options = configuration.model(model)
    require_harmless_parameters(model, configuration)
    if "://" in model:  # some providers are asked wherever the model's own name says
        raise _distrusted(model, configuration, "is in use, and a model that is named by an address may get keys there")
    if sends_elsewhere(provider, options):
        if credential := _credential(provider, configuration, options):
            host = urlsplit(options.api_base or "").hostname or "another host"
            raise _distrusted(model, configuration, f"sends it to {host[:100]}, and {credential} would go there")
    elif options.api_key_env is not None and not options.api_key_env.upper().startswith(_prefix(provider)):
        raise _distrusted(model, configuration, f"sends {options.api_key_env} to {provider} as its key")


def _credential(provider: str, configuration: Configuration, options: ModelOptions) -> str | None:
    """Name a credential that could go with a call; None where there is none."""
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
    """Compute how the names of the provider's variables begin, such as TOGETHER of together_ai."""
    return provider.upper().split("_")[0]


def place(base: str) -> tuple[str, str | None, int | None]:
    """Read scheme, host and port of an address; the address itself where it is none."""
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
