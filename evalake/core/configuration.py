"""What `evalake.toml` may say of models, providers, suites and the service; of keys, only where they are.

A file that the user names is trusted. One that merely lies in the working directory came with whatever lies there: it
may not set what is marked ONLY_TRUSTED, and `evalake.models.trust` says what else it may not.
"""

import os
import tomllib
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    IPvAnyNetwork,
    PrivateAttr,
    ValidationError,
    field_validator,
    model_validator,
)

from evalake.core.errors import ConfigurationError
from evalake.core.files import MEGABYTE, FileRefusedError, read_file
from evalake.core.prompt_files import PROMPTS, TEMPLATES, read_prompts
from evalake.core.redaction import has_password

# Which lake is meant: the one that is named, or that of the environment, or the folder `lake`.


DEFAULT_LAKE = "./lake"
VIEWER_PORT = 8601  # of `evalake view`
VARIABLE = "EVALAKE_LAKE"


def lake_uri(named: str | None) -> str:
    """Choose the lake: the one that is named, else EVALAKE_LAKE, else `./lake`."""
    return named or os.environ.get(VARIABLE) or DEFAULT_LAKE


def whole_address(lake: str) -> str:
    """Make a lake's address absolute, so that it means the same in every working directory."""
    return lake if "://" in lake else str(Path(lake).resolve())


# The words by which tables say who gave a reply, where that is no address and no name of the user's.


PROVIDER = "provider"  # the provider's own service
IN_PROCESS = "in-process"  # a baseline
IMPORT = "import"  # recorded results
UNKNOWN = "unknown"  # rows from before the column
UNSET = "unset"  # a model of a server whose address nobody has given
WORDS = (PROVIDER, IN_PROCESS, IMPORT, UNKNOWN, UNSET)
"""Every other endpoint is an address, which has `://`, or a name that the user's own configuration declares."""


CONFIGURATION_FILE = "evalake.toml"
LARGEST_FILE = MEGABYTE
FILE_VARIABLE = "EVALAKE_CONFIG"  # names the file that is read where no other is named
HOME_VARIABLE = "EVALAKE_HOME"  # a worker's folder, whose owner chose it: what lies there is trusted
TRUST_OPTION = "--trust-folder"

ONLY_TRUSTED: dict[str, Any] = {"only_trusted": True}
"""The `json_schema_extra` of a setting that a file of the working directory may not set."""

Count = Annotated[int, Field(ge=1, strict=True)]  # strict, for `true` is no number
Number = Annotated[float, Field(strict=True)]
# A name for whoever answers, so that replies are used again wherever the server moves
EndpointName = Annotated[str, Field(pattern=r"^[a-z0-9_.-]{1,64}$"), AfterValidator(lambda name: _not_reserved(name))]
Share = Annotated[Number, Field(ge=0, le=1)]


T = TypeVar("T", int, float)


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Price(_Section):
    """US dollars per million tokens."""

    input: Annotated[Number, Field(ge=0)]
    output: Annotated[Number, Field(ge=0)]
    cached_input: Annotated[Number, Field(ge=0)] | None = None  # None: as other input


class Limits(_Section):
    """How fast a provider is called, its timeouts and retries, and where its key is."""

    concurrency: Count = 16
    requests_per_minute: Annotated[Number, Field(gt=0)] | None = None
    timeout_seconds: Annotated[Number, Field(gt=0)] = 60.0  # for a whole answer, or for the next piece of one
    attempts: Count = 5
    breaker_failures: Count = 20  # failures in a row that open the circuit
    breaker_seconds: Annotated[Number, Field(gt=0)] = 30.0
    # The Prefect Secret block that holds the key, in place of an environment variable
    api_key_secret: Annotated[str, Field(pattern="^[a-z0-9-]+$")] | None = None
    # The endpoint of all its models; a model's own comes first
    endpoint: EndpointName | None = Field(default=None, json_schema_extra=ONLY_TRUSTED)


class ModelOptions(_Section):
    """How one model is reached and what it is asked with; or, with `model`, a variant of a model under a name."""

    model: str | None = None  # the real one: address, key and price are set there
    revision: str | None = None  # part of the prompt hash, for what changed behind one name; never sent
    api_base: str | None = None
    api_key_env: str | None = None  # the environment variable that holds the key, where LiteLLM's usual one does not
    parameters: dict[str, Any] = Field(default_factory=dict)  # part of every request, and so of its prompt hash
    price: Price | None = None  # in place of LiteLLM's price table
    # Whether its answers come piece by piece, so that timeout_seconds is the longest silence; None: as the suite has it
    stream: bool | None = None
    # Whether its provider is told, where it wants to be, to keep a prompt for the next turn; None: as the suite has it
    cache_prompt: bool | None = None
    endpoint: EndpointName | None = Field(default=None, json_schema_extra=ONLY_TRUSTED)
    # Whether replies from before endpoints were kept answer for a model without a provider's own service, too
    adopt_unknown_endpoint: bool = Field(default=False, json_schema_extra=ONLY_TRUSTED)
    suite_parameters: bool = True  # False: as a judge, asked without the parameters that suites declare for judges

    @field_validator("api_base")
    @classmethod
    def _without_password(cls, url: str | None) -> str | None:
        if url is not None and has_password(url):
            raise ValueError("an address with a password is shown to people: name a variable in api_key_env instead")
        return url

    @model_validator(mode="after")
    def _check(self) -> Self:
        own = self.api_base or self.api_key_env or self.price or self.endpoint or self.adopt_unknown_endpoint
        if self.model is not None and own:
            raise ValueError(
                "api_base, api_key_env, price, endpoint and adopt_unknown_endpoint are those of the real model: set "
                f"them for {self.model}"
            )
        return self


UNNAMED = ModelOptions()  # of a model that the file does not name


class Service(_Section):
    """Which proxies the scoring service trusts, and its timeouts and limits."""

    # Addresses and networks of the proxies that say which user asks
    trusted_proxies: tuple[IPvAnyNetwork, ...] = Field(default=(), json_schema_extra=ONLY_TRUSTED)
    user_header: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]+$")] = "X-Forwarded-User"  # names the user
    # Names that the service is addressed by, beside the loopback names and the address it listens on
    allowed_hosts: tuple[Annotated[str, Field(pattern=r"^[A-Za-z0-9.:-]+$")], ...] = Field(
        default=(), json_schema_extra=ONLY_TRUSTED
    )
    request_seconds: Annotated[Number, Field(gt=0)] = 10.0  # for a request's headers to arrive, then for its body
    connections: Annotated[Count, Field(le=100_000)] = 500  # open at once
    lost_after_seconds: Annotated[Number, Field(ge=1)] = 60.0  # a scoring without a sign of life for so long has failed
    follow_seconds: Annotated[Number, Field(gt=0)] = 5.0  # how often sources are looked at for new sessions
    drain_seconds: Annotated[Number, Field(ge=0)] = 10.0  # how long running scorings may go on at the service's end
    scorings_at_once: Annotated[Count, Field(le=64)] = 20  # by the service itself; workers have limits of their own


class Alarms(_Section):
    """When people are alerted, beyond the alerts that are always sent."""

    cost_usd_a_day: Annotated[Number, Field(gt=0)] | None = None  # what the runs of a day may cost; None: no alert


class Retention(_Section):
    """For how many days `evalake maintain` keeps what nothing needs any more; None: for ever."""

    # Files of versions that no snapshot pins; what is under way may need younger ones
    old_versions_days: Annotated[Count, Field(ge=7)] = 7
    # A file of the working directory must not decide what is deleted outside of the lake
    reports_days: Count | None = Field(default=None, json_schema_extra=ONLY_TRUSTED)
    results_days: Count | None = Field(default=None, json_schema_extra=ONLY_TRUSTED)  # of Prefect's tasks
    flow_runs_days: Count | None = Field(default=None, json_schema_extra=ONLY_TRUSTED)  # with logs and artifacts


class Configuration(_Section):
    """The whole file. Every part may be left out."""

    models: dict[str, ModelOptions] = Field(default_factory=dict)
    providers: dict[str, Limits] = Field(default_factory=dict)  # by LiteLLM provider name, such as "openai"
    # Each suite checks its own; `prompts` and `templates` in them, texts of files, only a trusted file may set
    suites: dict[str, dict[str, Any]] = Field(default_factory=dict)
    service: Service = Field(default_factory=Service)
    alarms: Alarms = Field(default_factory=Alarms)
    retention: Retention = Field(default_factory=Retention)
    suite_paths: tuple[Path, ...] = Field(default=(), json_schema_extra=ONLY_TRUSTED)  # folders of suites: code
    batch_size: Annotated[Count, Field(le=10_000)] = 250
    max_cost_usd: Annotated[Number, Field(gt=0)] | None = None  # what one run may spend; None: whatever it costs
    max_calls: Count | None = None  # how many calls one run may make
    max_missing: Share = 0.05  # of a model's items without an answer or a judgement; above it a run is incomplete
    accept_unreadable: bool = False  # whether a run may be complete where most replies of a model hold no verdict

    _distrusted: Path | None = PrivateAttr(default=None)

    @property
    def distrusted_file(self) -> Path | None:
        """The file of the working directory that it was read from, where the user did not name that; else None."""
        return self._distrusted

    @property
    def trusted(self) -> bool:
        """Whether it is the user's own, so that it may send keys and run code."""
        return self._distrusted is None

    def model(self, name: str) -> ModelOptions:
        """Look up the options of a model; the defaults where the file does not name it."""
        return self.models.get(name) or UNNAMED

    def real_model(self, name: str) -> str:
        """Look up which real model a name stands for: the name itself, unless the file makes it a variant."""
        return self.model(name).model or name

    def parameters(self, name: str) -> dict[str, Any]:
        """Merge the request parameters of a model: those of the real model, overridden by those of its variant."""
        return {**self.model(self.real_model(name)).parameters, **self.model(name).parameters}

    def takes_suite_parameters(self, name: str) -> bool:
        """Tell whether a judge is asked with its suite's parameters, too: its variant or the real one may forbid it."""
        return self.model(name).suite_parameters and self.model(self.real_model(name)).suite_parameters

    def revision(self, name: str) -> str | None:
        """Look up which revision of a model is asked: its variant's, or else the real one's."""
        return self.model(name).revision or self.model(self.real_model(name)).revision

    def streams(self, name: str, usual: bool) -> bool:
        """Tell whether a model answers piece by piece: as its variant says, or else the real one, or else `usual`."""
        return _first_said(self.model(name).stream, self.model(self.real_model(name)).stream, usual)

    def caches_prompts(self, name: str, usual: bool) -> bool:
        """Tell whether a provider is to keep prompts: as the variant says, or else the real model, or else `usual`."""
        return _first_said(self.model(name).cache_prompt, self.model(self.real_model(name)).cache_prompt, usual)

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name, options in self.models.items():
            if options.model is not None and self.model(options.model).model is not None:
                raise ValueError(f"models.{name}: {options.model} is a name itself; give the real model")
        return self

    def limits(self, provider: str) -> Limits:
        """Look up the limits of a provider; the defaults where the file does not name it."""
        return self.providers.get(provider, Limits())


def _not_reserved(name: str) -> str:
    if name in WORDS:
        raise ValueError(f"{name} is evalake's own word for an endpoint: take another name")
    return name


def _first_said(*words: bool | None) -> bool:
    return next(word for word in words if word is not None)


def read_configuration(path: Path | None = None) -> Configuration:
    """Read `path`, or the first that is there: EVALAKE_CONFIG, `evalake.toml` of the working directory, the user's own.

    A file of the working directory raises no ceiling of the user's own file. Raises ConfigurationError, naming the file
    and the entry that is not valid.
    """
    file, trusted = (path, True) if path is not None else _usual_file()
    if file is None:
        return Configuration()
    configuration = _parsed(file)
    if trusted:
        return _with_prompts(configuration, file)
    configuration = _within(configuration, _parsed(users_file()) if users_file().exists() else Configuration())
    configuration._distrusted = file
    if entry := next(chain(_only_trusted(configuration), _prompts(configuration)), None):
        raise ConfigurationError(
            f"{entry} may not be set by {file} of the working directory, but by a file that you name: if you trust "
            f"this one, give {TRUST_OPTION} or --config {file}"
        )
    return configuration


def _within(folders: Configuration, own: Configuration) -> Configuration:
    """Hold a folder's configuration to the ceilings of the user's own: the lower one counts, and fewer attempts do."""
    names = {*folders.providers, *own.providers}
    most = {name: min(folders.limits(name).attempts, own.limits(name).attempts) for name in names}
    lower = {
        "max_cost_usd": lowest(folders.max_cost_usd, own.max_cost_usd),
        "max_calls": lowest(folders.max_calls, own.max_calls),
        "alarms": Alarms(cost_usd_a_day=lowest(folders.alarms.cost_usd_a_day, own.alarms.cost_usd_a_day)),
        "providers": {name: folders.limits(name).model_copy(update={"attempts": most[name]}) for name in names},
    }
    return folders.model_copy(update=lower)


def lowest(*ceilings: T | None) -> T | None:
    """Compute the lowest of some ceilings; None is no ceiling."""
    return min((each for each in ceilings if each is not None), default=None)


def users_file() -> Path:
    """Name the file of the user's own configuration, whether or not it exists."""
    folder = os.environ.get("XDG_CONFIG_HOME", "")
    home = Path(folder) if Path(folder).is_absolute() else Path("~/.config").expanduser()
    return home / "evalake" / CONFIGURATION_FILE


def _usual_file() -> tuple[Path | None, bool]:
    """Find the file that is read where none is named, and whether it is trusted."""
    if named := os.environ.get(FILE_VARIABLE):
        return Path(named), True
    here = Path(CONFIGURATION_FILE)
    if here.exists():
        home = os.environ.get(HOME_VARIABLE)
        is_in_home = home and Path(home).resolve() == Path.cwd()
        return here, bool(is_in_home) or here.resolve() == users_file().resolve()
    return (own, True) if (own := users_file()).exists() else (None, True)


def _only_trusted(section: BaseModel, place: str = "") -> Iterator[str]:
    """Yield the entries that are set and that only a trusted file may set."""
    for name in section.model_fields_set:
        field, value = type(section).model_fields[name], getattr(section, name)
        if field.json_schema_extra == ONLY_TRUSTED:
            yield f"{place}{name}"
        for key, part in value.items() if isinstance(value, Mapping) else ((None, value),):
            if isinstance(part, BaseModel):
                yield from _only_trusted(part, f"{place}{name}.{key}." if key else f"{place}{name}.")


def _prompts(configuration: Configuration) -> Iterator[str]:
    """Yield the entries that name prompts and templates: texts of files, which are sent to models."""
    return (
        f"suites.{suite}.{key}"
        for suite, section in configuration.suites.items()
        for key in (PROMPTS, TEMPLATES)
        if key in section
    )


def _with_prompts(configuration: Configuration, file: Path) -> Configuration:
    """Replace the prompt files that the configuration names by their texts, so that other processes need no files."""
    if not any(_prompts(configuration)):
        return configuration
    try:
        read = {suite: read_prompts(suite, section, file.parent) for suite, section in configuration.suites.items()}
    except ConfigurationError as error:
        raise ConfigurationError(f"in the configuration file {file}, {error}") from error
    return configuration.model_copy(update={"suites": read})


def _parsed(file: Path) -> Configuration:
    try:
        return Configuration.model_validate(tomllib.loads(read_file(file, LARGEST_FILE).decode("utf-8")))
    except FileRefusedError as error:
        raise ConfigurationError(f"cannot read the configuration file {file}: {error.reason}") from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ascii(".".join(map(str, first["loc"])))[1:-1] or "the file"
        message = first["msg"].removeprefix("Value error, ")  # of our own checks, before which the library says so
        what = "there is no such setting" if first["type"] == "extra_forbidden" else message
        raise ConfigurationError(f"in the configuration file {file}, {where}: {what}") from error
    except (ValueError, RecursionError) as error:  # not TOML, not UTF-8, or nested or long beyond reason
        reason = " ".join(str(error).split())[:200]
        raise ConfigurationError(f"the configuration file {file} is not valid TOML: {reason}") from error


# Where suites of one's own are: the folders that configurations list that the user chose, for suites are code.


def suite_paths() -> tuple[Path, ...]:
    """List the folders of `suite_paths` in the user's own configuration, and in a file that the user named.

    A file that merely lies in the working directory is not read: its suites are code, which any command would run.

    Raises ConfigurationError where an entry is no folder.
    """
    folders: dict[Path, None] = {}
    for file in _trusted_files():
        for entry in read_configuration(file).suite_paths:
            folder = (file.parent / entry.expanduser()).resolve()
            if not folder.is_dir():
                raise ConfigurationError(f"suite_paths of {file} names {folder}, which is no folder")
            folders[folder] = None
    return tuple(folders)


def _trusted_files() -> list[Path]:
    named, home = os.environ.get(FILE_VARIABLE), os.environ.get(HOME_VARIABLE)
    files = [users_file(), *([Path(home) / CONFIGURATION_FILE] if home else [])]
    return [*(file for file in files if file.is_file()), *([Path(named)] if named else [])]
