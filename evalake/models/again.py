"""A stored request as commands that ask it again: `curl`, and Python. A key stands in them by its variable's name."""

import json
import os
import secrets
from collections.abc import Mapping
from typing import Any, NamedTuple

from evalake.core.configuration import Configuration
from evalake.core.errors import ProviderError
from evalake.core.redaction import redact
from evalake.models.endpoints import KEY_VARIABLES, KEYLESS, known_provider, likely_provider, require_trust
from evalake.models.litellm_calls import as_sent
from evalake.models.request import ANSWERED_HERE, BASELINE, Request, parameters_of
from evalake.models.routes import Route

_PYTHON = """import json
import os

import litellm

request = json.loads({request})
reply = litellm.completion(model={model}, **request{arguments})
print(reply.choices[0].message.content)
"""


class Commands(NamedTuple):
    """Commands that ask a request again; `curl` is None for providers that only LiteLLM can ask."""

    curl: str | None
    python: str


def ask_again(request: Mapping[str, Any], configuration: Configuration) -> Commands:
    """Write a decoded request of the ledger as commands for a POSIX shell and for Python.

    Raises ProviderError where nobody can be asked: a baseline, an unknown provider, or an untrusted configuration that
    would send a key elsewhere.
    """
    model = configuration.real_model(str(request.get("model", "")))
    if model.startswith(ANSWERED_HERE):
        by = "`evalake run --models`" if model.startswith(BASELINE) else "`evalake.evaluate`"
        raise ProviderError(f"{model} answers without a server: run it by {by}")
    provider = known_provider(model) or likely_provider(model)
    if provider is None or not isinstance(request.get("messages"), list):
        raise ProviderError("this request cannot be asked again: its provider or its messages are unknown")
    require_trust(model, provider, configuration)
    options = configuration.model(model)
    variable = options.api_key_env or _usual_variable(provider)
    parameters = {"messages": request["messages"], **parameters_of(request)}
    sent = json.dumps([parameters, options.api_base])
    if redact(sent) != sent:
        raise ProviderError("this request holds a key, so it is not written as a command")
    python = _python(model, parameters, variable, options.api_base)
    return Commands(_curl(model, provider, parameters, variable, options.api_base), python)


def _usual_variable(provider: str) -> str | None:
    """Name the variable of a provider's key: the first that is set, else the usual one; None where it needs none."""
    names = KEY_VARIABLES.get(provider, ())
    return None if provider in KEYLESS else next(filter(os.environ.get, names), next(iter(names), None))


def _python(model: str, parameters: Mapping[str, Any], variable: str | None, base: str | None) -> str:
    given = [f"api_base={base!r}"] if base else []
    given += [f"api_key=os.environ[{variable!r}]"] if variable else []
    text = json.dumps(parameters, ensure_ascii=True)
    return _PYTHON.format(
        request=repr(text),
        model=repr(model),
        arguments="".join(f", {each}" for each in given),
    )


def _curl(
    model: str, provider: str, parameters: Mapping[str, Any], variable: str | None, base: str | None
) -> str | None:
    """Write the request that evalake itself would send, with a stand-in for the key that becomes its variable."""
    if provider not in KEY_VARIABLES.keys() | KEYLESS or (variable is None and base is None):
        return None
    stand_in = f"key{secrets.token_hex(16)}"
    route = Route(model, provider, {"api_key": stand_in, **({"api_base": base} if base else {})}, None)
    given = {name: value for name, value in parameters.items() if name != "messages"}
    try:
        sent = as_sent(Request(model, tuple(parameters["messages"]), given), route)
    except Exception:  # noqa: BLE001 - LiteLLM may raise any exception for what this provider cannot be asked
        return None
    told = (f"-H {_quoted(f'{name}: {value}')}" for name, value in sent.headers.items())
    text = " \\\n  ".join([f"curl {_quoted(sent.address)}", *told, f"--data-raw {_quoted(sent.body.decode())}"])
    key = f"'\"${variable}\"'" if variable else "no-key-needed"
    return f"{text.replace(stand_in, key)}\n"


def _quoted(text: str) -> str:
    """Quote a text for a POSIX shell, always, so that a variable can be put between its quotes."""
    return "'" + text.replace("'", "'\"'\"'") + "'"
