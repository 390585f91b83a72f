"""The configuration file `evalake.toml`: models, providers, suites, the service, and the places of keys.

A file that the user names is trusted. A file that is found in the working directory may not set the fields marked
ONLY_TRUSTED; `evalake.models.endpoints` has further limits.
"""

import ast
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

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
from evalake.core.files import ABSENT, LINK_OUT, MEGABYTE, FileRefusedError, Files, read_file
from evalake.core.redaction import has_password

DEFAULT_LAKE = "./lake"
VIEWER_PORT = 8601  # of `evalake view`
VIEWER_URL = "EVALAKE_VIEWER_URL"  # where `evalake view` or `evalake serve` answers
VARIABLE = "EVALAKE_LAKE"


def lake_uri(named: str | None) -> str:
    """Choose the lake: the named one, else EVALAKE_LAKE, else `./lake`."""
    return named or os.environ.get(VARIABLE) or DEFAULT_LAKE


def whole_address(lake: str) -> str:
    """Make a lake's address independent of the working directory."""
    return lake if "://" in lake else str(Path(lake).resolve())


PROVIDER = "provider"  # the provider's own service
IN_PROCESS = "in-process"  # a baseline
IMPORT = "import"  # recorded results
UNKNOWN = "unknown"  # rows from before the column
UNSET = "unset"  # a model of a server without a configured address
WORDS = (PROVIDER, IN_PROCESS, IMPORT, UNKNOWN, UNSET)
"""Endpoints with a fixed word. Any other is an address, which has `://`, or a name from the user's configuration."""


PROMPTS = "prompts"
"""The key of a suite's further prompts, by name."""

TEMPLATES = "templates"
"""The key of a suite's set of templates: a shipped set, or a folder or file beside the configuration."""

CONFIGURATION_FILE = "evalake.toml"
LARGEST_FILE = MEGABYTE
SUITE_SUFFIXES = (".toml", ".yaml", ".yml")  # of files that declare a suite
FILE_VARIABLE = "EVALAKE_CONFIG"  # names the default file
HOME_VARIABLE = "EVALAKE_HOME"  # the folder of a worker, which is trusted
TRUST_OPTION = "--trust-folder"

ONLY_TRUSTED: dict[str, Any] = {"only_trusted": True}
"""The `json_schema_extra` of a setting that a file of the working directory may not set."""

Count = Annotated[int, Field(ge=1, strict=True)]  # strict, because Pydantic reads `true` as 1
Number = Annotated[float, Field(strict=True)]
# A name for the answering server, so that its replies stay valid when its address changes
EndpointName = Annotated[str, Field(pattern=r"^[a-z0-9_.-]{1,64}$"), AfterValidator(lambda name: _not_reserved(name))]
Share = Annotated[Number, Field(ge=0, le=1)]


T = TypeVar("T", int, float)


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)


class Price(_Section):
    """US dollars per million tokens, and per call; of an endpoint that counts no tokens, per call alone."""

    input: Annotated[Number, Field(ge=0)] | None = None
    output: Annotated[Number, Field(ge=0)] | None = None
    call: Annotated[Number, Field(ge=0)] | None = None
    cached_input: Annotated[Number, Field(ge=0)] | None = None  # None: as other input
    batch: Share = 1.0  # of these prices, in a batch job

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.input is None) != (self.output is None) or (self.input is None and self.call is None):
            raise ValueError("a price has input and output, per million tokens, or call, or all three")
        return self


class Limits(_Section):
    """A provider's rate limits, timeouts, retries, and the place of its key."""

    concurrency: Count = 16
    requests_per_minute: Annotated[Number, Field(gt=0)] | None = None
    timeout_seconds: Annotated[Number, Field(gt=0)] = 60.0  # for a whole answer, or for the next piece of a stream
    attempts: Count = 5
    breaker_failures: Count = 20  # failures in a row that open the circuit
    breaker_seconds: Annotated[Number, Field(gt=0)] = 30.0
    # The Prefect global concurrency limit that all flows share, whose slot a call holds
    prefect_limit: Annotated[str, Field(min_length=1)] | None = None
    # The Prefect Secret block that holds the key, instead of an environment variable
    api_key_secret: Annotated[str, Field(pattern="^[a-z0-9-]+$")] | None = None
    # The endpoint of all its models; a model's own overrides it
    endpoint: EndpointName | None = Field(default=None, json_schema_extra=ONLY_TRUSTED)


class ModelOptions(_Section):
    """The address, key and parameters of one model; or, with `model`, a named variant of another model."""

    model: str | None = None  # the real model of a variant, where address, key and price are set
    revision: str | None = None  # part of the prompt hash, never sent; tells apart models behind one name
    api_base: str | None = None
    # The environment variable that holds the key, instead of LiteLLM's usual one; commands to copy name it, too
    api_key_env: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] | None = None
    parameters: dict[str, Any] = Field(default_factory=dict)  # part of every request, and so of its prompt hash
    price: Price | None = None  # instead of LiteLLM's price table
    # Whether its answers are streamed, so that timeout_seconds is the longest silence; None: the suite's default
    stream: bool | None = None
    # Whether its provider caches prompts for the next turn; None: the suite's default
    cache_prompt: bool | None = None
    # Whether its requests go to the provider's batch jobs; None: where the run asks for it
    batch: bool | None = None
    # The most tokens that a request may have; None: as LiteLLM's table says
    context: Annotated[int, Field(gt=0)] | None = None
    endpoint: EndpointName | None = Field(default=None, json_schema_extra=ONLY_TRUSTED)
    # Whether ledger rows without an endpoint answer for this model, even if its provider has no service of its own
    adopt_unknown_endpoint: bool = Field(default=False, json_schema_extra=ONLY_TRUSTED)
    suite_parameters: bool = True  # False: as a judge, asked without the suite's parameters for judges
    # Judges, asked in this order where this one's provider cannot answer
    fallbacks: tuple[str, ...] = ()

    @field_validator("api_base")
    @classmethod
    def _without_password(cls, url: str | None) -> str | None:
        if url is not None and has_password(url):
            raise ValueError("the address holds a password, which reports would show: use api_key_env instead")
        return url

    @model_validator(mode="after")
    def _check(self) -> Self:
        own = self.api_base or self.api_key_env or self.price or self.endpoint or self.adopt_unknown_endpoint
        if self.model is not None and own:
            raise ValueError(
                "api_base, api_key_env, price, endpoint and adopt_unknown_endpoint belong to the real model: set "
                f"them for {self.model}"
            )
        return self


UNNAMED = ModelOptions()  # for models that the file does not name


class Service(_Section):
    """The scoring service's trusted proxies, timeouts and limits."""

    # Addresses and networks of proxies whose user header is trusted
    trusted_proxies: tuple[IPvAnyNetwork, ...] = Field(default=(), json_schema_extra=ONLY_TRUSTED)
    user_header: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]+$")] = "X-Forwarded-User"
    # Host names of the service, beside the loopback names and its own address
    allowed_hosts: tuple[Annotated[str, Field(pattern=r"^[A-Za-z0-9.:-]+$")], ...] = Field(
        default=(), json_schema_extra=ONLY_TRUSTED
    )
    request_seconds: Annotated[Number, Field(gt=0)] = 10.0  # for a request's headers to arrive, then for its body
    connections: Annotated[Count, Field(le=100_000)] = 500  # open at once
    lost_after_seconds: Annotated[Number, Field(ge=1)] = 60.0  # without a heartbeat, until a scoring counts as failed
    follow_seconds: Annotated[Number, Field(gt=0)] = 5.0  # between two searches of the sources for new sessions
    drain_seconds: Annotated[Number, Field(ge=0)] = 10.0  # for running scorings when the service stops
    scorings_at_once: Annotated[Count, Field(le=64)] = 20  # in the service's own process
    # Whether new sessions of the sources are scored without being asked for
    score_on_completion: bool = Field(default=False, json_schema_extra=ONLY_TRUSTED)
    completion_usd_a_day: Annotated[Number, Field(gt=0)] = 10.0  # what these scorings may cost in 24 hours
    completions_an_hour: Count = 60  # how many of them may begin in an hour


class Alarms(_Section):
    """Thresholds of optional alerts."""

    cost_usd_a_day: Annotated[Number, Field(gt=0)] | None = None  # alert above this cost of a day's runs


class Retention(_Section):
    """The days for which `evalake maintain` keeps unneeded files and rows; None: for ever."""

    # Files of versions that no snapshot pins; running readers may need files of the last week
    old_versions_days: Annotated[Count, Field(ge=7)] = 7
    # These delete outside of the lake
    reports_days: Count | None = Field(default=None, json_schema_extra=ONLY_TRUSTED)
    results_days: Count | None = Field(default=None, json_schema_extra=ONLY_TRUSTED)  # of Prefect's tasks
    flow_runs_days: Count | None = Field(default=None, json_schema_extra=ONLY_TRUSTED)  # with logs and artifacts


class Configuration(_Section):
    """The whole file. Every part may be left out."""

    models: dict[str, ModelOptions] = Field(default_factory=dict)
    providers: dict[str, Limits] = Field(default_factory=dict)  # by LiteLLM provider name, like "openai"
    # Each suite checks its own section; only a trusted file may set `prompts` and `templates`, which name files
    suites: dict[str, dict[str, Any]] = Field(default_factory=dict)
    service: Service = Field(default_factory=Service)
    alarms: Alarms = Field(default_factory=Alarms)
    retention: Retention = Field(default_factory=Retention)
    suite_paths: tuple[Path, ...] = Field(default=(), json_schema_extra=ONLY_TRUSTED)  # of suites: code
    batch_size: Annotated[Count, Field(le=10_000)] = 250
    max_cost_usd: Annotated[Number, Field(gt=0)] | None = None  # of one run
    max_calls: Count | None = None  # of one run
    max_missing: Share = 0.05  # of a model's items without answer or judgement; a run with more is incomplete
    accept_unreadable: bool = False  # whether a run may be complete although most replies of a model have no verdict

    _distrusted: Path | None = PrivateAttr(default=None)

    @property
    def distrusted_file(self) -> Path | None:
        """The file of the working directory that the user did not name; None for a trusted configuration."""
        return self._distrusted

    @property
    def trusted(self) -> bool:
        """Whether it may send keys and run code: it is the user's own."""
        return self._distrusted is None

    def model(self, name: str) -> ModelOptions:
        """Look up the options of a model; the defaults where the file does not name it."""
        return self.models.get(name) or UNNAMED

    def real_model(self, name: str) -> str:
        """Look up the real model of a variant; any other name is a real model."""
        return self.model(name).model or name

    def parameters(self, name: str) -> dict[str, Any]:
        """Merge the request parameters of a model: its variant's override the real model's."""
        return {**self.model(self.real_model(name)).parameters, **self.model(name).parameters}

    def takes_suite_parameters(self, name: str) -> bool:
        """Tell whether a judge is asked with its suite's parameters; its variant or the real model may forbid it."""
        return self.model(name).suite_parameters and self.model(self.real_model(name)).suite_parameters

    def revision(self, name: str) -> str | None:
        """Look up the revision of a model: its variant's, else the real model's."""
        return self.model(name).revision or self.model(self.real_model(name)).revision

    def is_on(self, option: Literal["stream", "cache_prompt", "batch"], name: str, usual: bool) -> bool:
        """Tell whether an option of a model is on: by its variant, else by the real model, else by `usual`."""
        stated = (getattr(self.model(each), option) for each in (name, self.real_model(name)))
        return bool(next((value for value in stated if value is not None), usual))

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name, options in self.models.items():
            if options.model is not None and self.model(options.model).model is not None:
                raise ValueError(f"models.{name}: {options.model} is an alias; give the model it stands for")
        return self

    def fallbacks(self, model: str) -> tuple[str, ...]:
        """List the judges that are asked in place of one whose provider cannot answer."""
        return self.models.get(model, UNNAMED).fallbacks

    def limits(self, provider: str) -> Limits:
        """Look up the limits of a provider; the defaults where the file does not name it."""
        return self.providers.get(provider, Limits())


def _not_reserved(name: str) -> str:
    if name in WORDS:
        raise ValueError(f"{name} is a reserved endpoint: choose another name")
    return name


def read_configuration(path: Path | None = None) -> Configuration:
    """Read `path`, or the first of: EVALAKE_CONFIG, `evalake.toml` of the working directory, the user's own file.

    A file of the working directory cannot raise a ceiling of the user's own file. Raises ConfigurationError, naming
    the file and the invalid entry.
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
            f"{file} of the working directory may not set {entry}: if you trust this folder, run `evalake trust`, "
            f"or give {TRUST_OPTION} or --config {file}"
        )
    return configuration


_OF_COMPLETIONS = ("completion_usd_a_day", "completions_an_hour")


def _within(folders: Configuration, own: Configuration) -> Configuration:
    """Limit a folder's configuration to the ceilings and attempts of the user's own file."""
    names = {*folders.providers, *own.providers}
    most = {name: min(folders.limits(name).attempts, own.limits(name).attempts) for name in names}
    service = {name: lowest(getattr(folders.service, name), getattr(own.service, name)) for name in _OF_COMPLETIONS}
    lower = {
        "max_cost_usd": lowest(folders.max_cost_usd, own.max_cost_usd),
        "max_calls": lowest(folders.max_calls, own.max_calls),
        "alarms": Alarms(cost_usd_a_day=lowest(folders.alarms.cost_usd_a_day, own.alarms.cost_usd_a_day)),
        "service": folders.service.model_copy(update=service),
        "providers": {name: folders.limits(name).model_copy(update={"attempts": most[name]}) for name in names},
    }
    return folders.model_copy(update=lower)


def lowest(*ceilings: T | None) -> T | None:
    """Compute the lowest ceiling; None is no ceiling."""
    return min((each for each in ceilings if each is not None), default=None)


def users_file() -> Path:
    """Return the path of the user's own configuration, which may not exist."""
    folder = os.environ.get("XDG_CONFIG_HOME", "")
    home = Path(folder) if Path(folder).is_absolute() else Path("~/.config").expanduser()
    return home / "evalake" / CONFIGURATION_FILE


def _usual_file() -> tuple[Path | None, bool]:
    """Find the default file, and whether it is trusted."""
    if named := os.environ.get(FILE_VARIABLE):
        return Path(named), True
    here = Path(CONFIGURATION_FILE)
    if here.exists():
        home = os.environ.get(HOME_VARIABLE)
        is_in_home = home and Path(home).resolve() == Path.cwd()
        return here, bool(is_in_home) or here.resolve() == users_file().resolve()
    return (own, True) if (own := users_file()).exists() else (None, True)


def _only_trusted(section: BaseModel, place: str = "") -> Iterator[str]:
    """Yield the entries that only a trusted file may set."""
    for name in sorted(section.model_fields_set):
        field, value = type(section).model_fields[name], getattr(section, name)
        if field.json_schema_extra == ONLY_TRUSTED:
            yield f"{place}{name}"
        for key, part in value.items() if isinstance(value, Mapping) else ((None, value),):
            if isinstance(part, BaseModel):
                yield from _only_trusted(part, f"{place}{name}.{key}." if key else f"{place}{name}.")


def _prompts(configuration: Configuration) -> Iterator[str]:
    """Yield the entries of prompts and templates, whose files are sent to models."""
    return (
        f"suites.{suite}.{key}"
        for suite, section in configuration.suites.items()
        for key in (PROMPTS, TEMPLATES)
        if key in section
    )


def _with_prompts(configuration: Configuration, file: Path) -> Configuration:
    """Replace the names of prompt files by their texts, for processes without these files."""
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
        known, message = first["type"] != "extra_forbidden", first["msg"].removeprefix("Value error, ")
        what = message if known else "there is no such setting: correct its name, or remove it"
        raise ConfigurationError(f"in the configuration file {file}, {where}: {what}") from error
    except (ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ConfigurationError(f"the configuration file {file} is not valid TOML: {reason}") from error


def suite_paths() -> tuple[Path, ...]:
    """List folders and files of `suite_paths` in trusted configurations only: suites are code, which commands import.

    Raises ConfigurationError where an entry is neither a folder of suites nor a suite's file.
    """
    named, home = os.environ.get(FILE_VARIABLE), os.environ.get(HOME_VARIABLE)
    usual = [users_file(), *([Path(home) / CONFIGURATION_FILE] if home else [])]
    folders: dict[Path, None] = {}
    for file in [*filter(Path.is_file, usual), *([Path(named)] if named else [])]:
        for entry in read_configuration(file).suite_paths:
            folder = (file.parent / entry.expanduser()).resolve()
            if not (folder.is_dir() or (folder.is_file() and folder.suffix in SUITE_SUFFIXES)):
                raise ConfigurationError(f"suite_paths of {file} names {folder}, which is no folder or suite's file")
            if any((folder / f"suite{suffix}").is_file() for suffix in (".py", *SUITE_SUFFIXES)):
                raise ConfigurationError(
                    f"suite_paths of {file} names {folder}, the folder of one suite: name the folder that holds it"
                )
            folders[folder] = None
    return tuple(folders)


# The user's own prompts: files beside a configuration, which `[suites.NAME.prompts.MINE]` names.


PROMPT_SUFFIX = ".md"

_PROMPT_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


def read_prompts(suite: str, section: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    """Replace the file names in a suite's prompts and templates by the texts of the files.

    Args:
        suite: The name of the suite, for errors.
        section: Its section of the configuration.
        folder: The configuration's folder; files outside are refused.

    Returns:
        The section, its prompts as name -> part -> text, and its templates, where they name a folder, as part -> text.

    Raises:
        ConfigurationError: A prompt is not a table of file names, a folder holds no templates, or a file is missing,
            empty, no text, or elsewhere.
    """
    files = Files(folder, LARGEST_FILE)
    named = section.get(TEMPLATES, "")
    if not isinstance(named, str):
        raise ConfigurationError(f"suites.{suite}.{TEMPLATES} must name a set of templates, or a folder of them")
    if named and (folder / named).is_dir():
        section = {**section, TEMPLATES: _prompts_of_folder(f"suites.{suite}.{TEMPLATES}", named, files)}
    elif named and (folder / named).is_file():
        section = {**section, TEMPLATES: _prompts_of_document(f"suites.{suite}.{TEMPLATES}", named, files)}
    if PROMPTS not in section:
        return section
    place = f"suites.{suite}.{PROMPTS}"
    given = section[PROMPTS]
    if not isinstance(given, Mapping):
        raise ConfigurationError(f'{place} must be a table of prompts, like [{place}.mine] with system = "mine.md"')
    return {**section, PROMPTS: {name: _prompt(f"{place}.{name}", name, parts, files) for name, parts in given.items()}}


def _prompt(place: str, name: str, parts: Any, files: Files) -> dict[str, str]:
    if not _PROMPT_NAME.fullmatch(name):
        raise ConfigurationError(f"{place!a} is not a prompt's name: use small letters, digits and _, at most 40")
    if not isinstance(parts, Mapping) or not parts or not all(isinstance(file, str) for file in parts.values()):
        raise ConfigurationError(f'{place} must name a file for each part of the prompt, like system = "{name}.md"')
    return {part: _prompt_text(f"{place}.{part}", file, files) for part, file in parts.items()}


def _prompts_of_folder(place: str, name: str, files: Files) -> dict[str, str]:
    """Read the texts of a folder, by file name without the ending."""
    paths = sorted((files.root / name).glob(f"*{PROMPT_SUFFIX}"))
    if not paths:
        raise ConfigurationError(f"{place} names the folder {_shown(name)}, in which no file ends in {PROMPT_SUFFIX}")
    return {path.stem: _prompt_text(f"{place}.{path.stem}", str(Path(name) / path.name), files) for path in paths}


_PART_OF_NAME = {
    "missing_tools": "missing_tools",
    "reminder": "reminder",
    "system": "system",
    "schema": "output_schema",
    "score": "request",
}  # the first word that a name holds
_BLOCK = re.compile(r"^#{1,6}[^\n]*?`?([A-Za-z_]{3,60})`?[ \t]*\n\s*```[a-z]*\n(.*?)^```", re.DOTALL | re.MULTILINE)


def _prompts_of_document(place: str, name: str, files: Files) -> dict[str, str]:
    """Read the prompts of a document: fenced blocks under headings that name them, or constants of a Python file.

    Nothing of the file is executed.
    """
    content = _prompt_text(place, name, files)
    named = _constants(content) if name.endswith(".py") else dict(_BLOCK.findall(content))
    parts: dict[str, str] = {}
    for of, text in named.items():
        part = next((part for word, part in _PART_OF_NAME.items() if word in of.lower()), None)
        if part is not None:
            parts.setdefault(part, text.strip())
    if "request" not in parts:
        raise ConfigurationError(f"{place} names {_shown(name)}, in which no prompt is called like judge_prompt_score")
    return parts


def _constants(content: str) -> dict[str, str]:
    try:
        body = ast.parse(content).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    return {
        target.id: each.value.value
        for each in body
        if isinstance(each, ast.Assign) and isinstance(each.value, ast.Constant) and isinstance(each.value.value, str)
        for target in each.targets
        if isinstance(target, ast.Name)
    }


def _prompt_text(place: str, name: str, files: Files) -> str:
    try:
        text = files.read(files.root / name).decode("utf-8")
    except FileRefusedError as error:
        raise ConfigurationError(f"{place} names {_shown(name)}, {_WHY.get(error.reason, error.reason)}") from error
    except ValueError as error:  # no UTF-8, or a NUL in the name
        raise ConfigurationError(f"{place} names {_shown(name)}, which is not UTF-8") from error
    if not text.strip() or "\x00" in text:
        raise ConfigurationError(f"{place} names {_shown(name)}, which {'holds a NUL' if text.strip() else 'is empty'}")
    return text.strip()


def _shown(name: str) -> str:
    return ascii(name[:200])[1:-1]


_WHY: Mapping[str, str] = {
    ABSENT: "but there is no such file beside the configuration",
    LINK_OUT: "which lies outside the configuration's folder: put it there",
}
