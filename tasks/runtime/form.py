"""The form of a run in the Prefect UI, with known names as choices; and the inputs of all flows.

Prefect draws a form from the JSON schemas of a flow's parameters: a list of an enumeration as a multiple choice, and
alternatives as tabs with titles. It distinguishes alternatives by type, so at most one is a list of texts; the last one
takes any list as JSON, which API clients use for unknown names.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import date
from functools import cache, update_wrapper
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any, ParamSpec, TypeVar, cast
from uuid import UUID

import httpx
from coolname.data import config
from prefect.client.orchestration import get_client
from prefect.exceptions import PrefectException
from prefect.runtime import flow_run
from pydantic import BeforeValidator, Field, TypeAdapter, WithJsonSchema

from evalake.core.configuration import PROMPTS, Configuration, lake_uri, read_configuration
from evalake.core.errors import ConfigurationError
from evalake.core.redaction import NO_PASSWORD
from evalake.models.routes import find_route
from evalake.request import OPTIONS, Option, RunRequest, listed
from evalake.storage.lake import Lake
from evalake.suites.registry import baselines, manifest_of, suite_names
from evalake.tasks.runtime.context import RunContext
from evalake.tasks.runtime.logs import redact_logs
from evalake.tasks.runtime.resources import release_client
from evalake.tasks.runtime.server import read_secret

SHOWN_MODELS = 3

CALLER: ContextVar[str] = ContextVar("CALLER", default="Python")
"""The caller of flows in this process."""

PREFECT_UI, SCHEDULE, API, AUTOMATION = "Prefect UI", "schedule", "API", "automation"
COMMAND_LINE = "command line"

_AGAIN = ("AwaitingRetry", "Resuming")
_RETRIED_IN_UI = "Retry from the UI"  # begins the message of the state that the UI's button sets
_RETRIED_ITSELF = "Flow run encountered an exception"  # begins that of a retry after a failure


def evaluate_run_name() -> str:
    """Name an evaluate flow run after its suite, models and day, for Prefect; a name that the user gave stays."""
    name = flow_run.name
    if name and not is_generated(name):
        return str(name)
    parameters = flow_run.parameters
    day = parameters.get("day") or flow_run.scheduled_start_time.date().isoformat()
    return f"{parameters['suite']}: {_model_names(parameters.get('models'))}, {day}"


def is_generated(name: str) -> bool:
    """Tell whether Prefect generated the name, from an adjective and an animal of its lists."""
    adjective, dash, animal = name.partition("-")
    return bool(dash) and adjective in _words("adj_any") and animal in _words("subj")


@cache
def _words(kind: str) -> frozenset[str]:
    """Read the words of a list of `coolname` and of its nested lists."""
    declared = cast("Mapping[str, Any]", config[kind])
    return frozenset(declared.get("words", ())).union(*map(_words, declared.get("lists", ())))


def day_of_run(asked: date | None = None) -> date:
    """Return the day of the current flow run: the asked day, which a made-up run has, or the scheduled one."""
    scheduled: date = flow_run.scheduled_start_time.date()
    return asked or scheduled


def current_attempt() -> int:
    """Count the attempts of the current flow run; Prefect's own object keeps the first one's number in a retry."""
    try:
        with get_client(sync_client=True) as client:
            return client.read_flow_run(UUID(str(flow_run.id))).run_count or 1
    except (httpx.HTTPError, PrefectException):
        return flow_run.run_count or 1


def started_by(flow_run_id: str, attempt: int) -> str | None:
    """Find the starter of an attempt: a schedule, Prefect's UI, or the caller; None where unknown."""
    try:
        with get_client(sync_client=True) as client:
            run = client.read_flow_run(UUID(flow_run_id))
            states = client.read_flow_run_states(UUID(flow_run_id))
    except (httpx.HTTPError, PrefectException):
        return None
    if run.deployment_id is None:
        return CALLER.get()
    scheduled = [state for state in sorted(states, key=lambda state: state.timestamp) if state.is_scheduled()]
    asked = scheduled[:1] if attempt == 1 else [state for state in scheduled if state.name in _AGAIN][-1:]
    return _starter(run, asked[0], attempt) if asked else None


def _starter(run: Any, state: Any, attempt: int) -> str:
    if (state.message or "").startswith(_RETRIED_ITSELF):
        return SCHEDULE
    if attempt > 1:
        return PREFECT_UI if (state.message or "").startswith(_RETRIED_IN_UI) else API
    if run.auto_scheduled:
        return SCHEDULE
    if run.created_by and run.created_by.type == "AUTOMATION":
        return AUTOMATION
    # The UI's buttons and form send a message, even an empty one; API clients send none
    return API if state.message is None else PREFECT_UI


def _model_names(models: Iterable[str] | str | None) -> str:
    names = [models] if isinstance(models, str) else [*(models or ())]
    if not names:
        return "baselines"
    further = len(names) - SHOWN_MODELS
    return ", ".join(names[:SHOWN_MODELS]) + (f" and {further} more" if further > 0 else "")


P = ParamSpec("P")
R = TypeVar("R")

# The server refuses a URL with a password, which it would store
_TEXT = {"type": "string", "pattern": NO_PASSWORD}


def _configuration() -> Configuration:
    """Read the configuration; an invalid one counts as empty, and the run reports the error."""
    try:
        return read_configuration()
    except ConfigurationError:
        return Configuration()


def _known() -> Mapping[str, set[str]]:
    """Find the names that the form offers, by the `known` of options."""
    suites, configured = [manifest_of(name) for name in suite_names()], _configuration()
    own_prompts = {name for section in configured.suites.values() for name in section.get(PROMPTS, {})}
    return {
        "models": {model for each in suites for model in each.models} | configured.models.keys(),
        "judges": {judge for each in suites for judge in each.judges} | configured.models.keys(),
        "starter": {source for each in suites for source in each.starter},
        "prompt_types": {kind for each in suites for kind in each.prompt_types} | own_prompts,
    }


_KNOWN = _known()
_SUITE = {"type": "string", "enum": list(suite_names())}


def _either(default: str, other: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Build the schema of a field with a default: the words for the default, or another value."""
    return {"anyOf": [{"type": "null", "title": default}, {"title": other, **schema}]}


def _names(option: Option) -> dict[str, Any]:
    """Build the schema of a list of names: a choice, a text, or JSON."""
    choices = {"type": "array", "title": "choose", "items": {"type": "string", "enum": sorted(_KNOWN[option.known])}}
    written = {**_TEXT, "title": "write, by comma" if option.separator == "," else "write, one a line"}
    anything = {"title": "JSON", "anyOf": [{"type": "array", "items": _TEXT}, {"type": "null"}]}
    return {"anyOf": [choices, written, anything]}


def _field(option: Option) -> WithJsonSchema:
    """Build the form's field of an option: its help, and the schema of its value."""
    declared_as: Any = Annotated[option.field.annotation, Field(), *option.field.metadata]
    declared = TypeAdapter(declared_as).json_schema()
    value = declared["anyOf"][0] if "anyOf" in declared else declared
    if option.name == "suite":
        value = _SUITE
    elif option.name == "lake":
        value = _TEXT
    elif option.known:
        value = _names(option)
    given = "number" if option.type is int else option.metavar
    schema = _either(option.unset, given, value) if option.unset else value
    return WithJsonSchema({"description": option.text, **schema})


_FIELDS = {name: _field(option) for name, option in OPTIONS.items()}

# For flows that take some of the options of a run
SuiteName = Annotated[str, _FIELDS["suite"]]
Judges = Annotated[Sequence[str] | None, BeforeValidator(listed), _FIELDS["judges"]]
Day = Annotated[date | None, _FIELDS["day"]]
LakeUri = Annotated[str | None, _FIELDS["lake"]]
ConfigurationFile = Annotated[str | None, _FIELDS["configuration_file"]]
Judge = Annotated[str | None, WithJsonSchema(_either("rules", "a model", _TEXT))]
Suites = Annotated[Sequence[str] | None, WithJsonSchema({"type": "array", "items": _SUITE})]


def takes_request(
    request: Callable[P, RunRequest],
) -> Callable[[Callable[[RunRequest], R]], Callable[P, R]]:
    """Give a flow all options of a run as parameters with fields in the form, and pass them on as one request."""

    def decorate(run: Callable[[RunRequest], R]) -> Callable[P, R]:
        def with_options(*args: P.args, **options: P.kwargs) -> R:
            return run(request(*args, **options))

        update_wrapper(with_options, run)
        del with_options.__wrapped__  # type: ignore[attr-defined]  # Prefect would read its parameters
        with_options.__signature__ = Signature(list(map(_parameter, OPTIONS.values())))  # type: ignore[attr-defined]
        return with_options

    return decorate


def _parameter(option: Option) -> Parameter:
    default = Parameter.empty if option.field.is_required() else option.default
    annotation = Annotated[Any, _FIELDS[option.name]]
    return Parameter(option.name, Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=annotation)


def open_lake(lake: str | None) -> Lake:
    """Open a flow run's lake, and redact its logs from now on."""
    redact_logs()
    return Lake(lake_uri(lake))


def flow_inputs(lake: str | None, configuration_file: str | None) -> tuple[Lake, Configuration]:
    """Open a flow run's lake as `open_lake` does, and read its configuration."""
    return open_lake(lake), read_configuration(Path(configuration_file) if configuration_file else None)


def run_id_of(flow_run_id: str) -> str:
    """Name a run by the random end of its flow run's id, so that a retry continues the same run."""
    return flow_run_id.replace("-", "")[-12:]


def context_of(suite: str, judges: Iterable[str], lake: Lake, configuration: Configuration) -> RunContext:
    """Build the context of this flow run. Raises ProviderError where one of the judges cannot be called."""
    for judge in judges:
        find_route(judge, configuration, read_secret, baselines())
    return RunContext(run_id_of(str(flow_run.id)), suite, lake, configuration)


@contextmanager
def judge_context(suite: str, judges: Iterable[str], lake: Lake, configuration: Configuration) -> Iterator[RunContext]:
    """Yield a context as `context_of` builds it, and close its client at the end."""
    context = context_of(suite, judges, lake, configuration)
    try:
        yield context
    finally:
        release_client(context)
