"""What `evalake.toml` may say of models, providers, suites and the service; of keys, only where they are."""

import tomllib
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, IPvAnyNetwork, ValidationError

from contracts.errors import ConfigurationError

CONFIGURATION_FILE = "evalake.toml"

Count = Annotated[int, Field(ge=1, strict=True)]  # strict, for `true` is no number
Number = Annotated[float, Field(strict=True)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Price(_Section):
    """US dollars per million tokens."""

    input: Annotated[Number, Field(ge=0)]
    output: Annotated[Number, Field(ge=0)]
    cached_input: Annotated[Number, Field(ge=0)] | None = None  # None: as other input


class Limits(_Section):
    """How fast and how patiently a provider is called, and with whose key."""

    concurrency: Count = 16
    requests_per_minute: Annotated[Number, Field(gt=0)] | None = None
    timeout_seconds: Annotated[Number, Field(gt=0)] = 60.0
    attempts: Count = 5
    breaker_failures: Count = 20  # failures in a row that open the circuit
    breaker_seconds: Annotated[Number, Field(gt=0)] = 30.0
    # The Prefect Secret block that holds the key, in place of an environment variable
    api_key_secret: Annotated[str, Field(pattern="^[a-z0-9-]+$")] | None = None


class ModelOptions(_Section):
    """How one model is reached and what it is asked with."""

    api_base: str | None = None
    api_key_env: str | None = None  # the environment variable that holds the key, where LiteLLM's usual one does not
    parameters: dict[str, Any] = Field(default_factory=dict)  # part of every request, and so of its prompt hash
    price: Price | None = None  # in place of LiteLLM's price table


class Service(_Section):
    """Whom the scoring service trusts, and how patient it is."""

    # Addresses and networks of the proxies whose X-Forwarded-User and X-Forwarded-Email are believed
    trusted_proxies: tuple[IPvAnyNetwork, ...] = ()
    lost_after_seconds: Annotated[Number, Field(ge=1)] = 60.0  # a scoring without a sign of life for so long has failed
    drain_seconds: Annotated[Number, Field(ge=0)] = 30.0  # how long running scorings may go on at the service's end
    scorings_at_once: Annotated[Count, Field(le=64)] = 2  # by the service itself; workers have limits of their own


class Configuration(_Section):
    """The whole file. Every part may be left out."""

    models: dict[str, ModelOptions] = Field(default_factory=dict)
    providers: dict[str, Limits] = Field(default_factory=dict)  # by LiteLLM provider name, such as "openai"
    suites: dict[str, dict[str, Any]] = Field(default_factory=dict)  # each suite checks its own
    service: Service = Field(default_factory=Service)
    batch_size: Annotated[Count, Field(le=10_000)] = 250

    def model(self, name: str) -> ModelOptions:
        """The options of a model; the defaults where the file does not name it."""
        return self.models.get(name, ModelOptions())

    def limits(self, provider: str) -> Limits:
        """The limits of a provider; the defaults where the file does not name it."""
        return self.providers.get(provider, Limits())


def read_configuration(path: Path | None = None) -> Configuration:
    """Read `path`, or `evalake.toml` of the working directory if it is there.

    Raises ConfigurationError, naming the file and the entry that cannot be.
    """
    file = path or Path(CONFIGURATION_FILE)
    if path is None and not file.exists():
        return Configuration()
    try:
        return Configuration.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))
    except OSError as error:
        raise ConfigurationError(f"cannot read the configuration file {file}: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ascii(".".join(map(str, first["loc"])))[1:-1] or "the file"
        what = "there is no such setting" if first["type"] == "extra_forbidden" else first["msg"]
        raise ConfigurationError(f"in the configuration file {file}, {where}: {what}") from error
    except (ValueError, RecursionError) as error:  # not TOML, not UTF-8, or nested or long beyond reason
        reason = " ".join(str(error).split())[:200]
        raise ConfigurationError(f"the configuration file {file} is not valid TOML: {reason}") from error
