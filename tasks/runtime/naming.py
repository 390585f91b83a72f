"""The name, the tags, the day and the starter of a flow run."""

from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from datetime import date
from functools import cache
from typing import Any, cast
from uuid import UUID

import httpx
from coolname.data import config
from prefect.client.orchestration import get_client
from prefect.context import FlowRunContext
from prefect.exceptions import PrefectException
from prefect.runtime import flow_run

SHOWN_MODELS = 3
MOST_MODEL_TAGS = 20

CALLER: ContextVar[str] = ContextVar("CALLER", default="Python")
"""The caller of flows in this process."""

PREFECT_UI, SCHEDULE, API, AUTOMATION = "Prefect UI", "schedule", "API", "automation"
COMMAND_LINE = "command line"

_AGAIN = ("AwaitingRetry", "Resuming")
_RETRIED_IN_UI = "Retry from the UI"  # begins the message of the state that the UI's button sets


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


def tag_flow_run(suite: str, models: Sequence[str], run_id: str) -> None:
    """Add its suite, models and run id to the flow run's tags."""
    context = FlowRunContext.get()
    if context is None or context.flow_run is None:
        return
    tags = dict.fromkeys([*context.flow_run.tags, suite, *models[:MOST_MODEL_TAGS], run_id])
    with get_client(sync_client=True) as client:
        client.update_flow_run(context.flow_run.id, tags=list(tags))


def day_of_run(asked: date | None = None) -> date:
    """Return the day of the current flow run: the asked day, which a made-up run has, or the scheduled one."""
    scheduled: date = flow_run.scheduled_start_time.date()
    return asked or scheduled


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
