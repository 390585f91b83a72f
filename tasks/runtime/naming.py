"""What Prefect knows of a flow run: its name and tags, the day that it is for, and who started it."""

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
"""Who calls flows in this process."""

PREFECT_UI, SCHEDULE, API, AUTOMATION = "Prefect UI", "schedule", "API", "automation"
COMMAND_LINE = "command line"

_AGAIN = ("AwaitingRetry", "Resuming")
_RETRIED_IN_UI = "Retry from the UI"  # as the message of the state that its button sets begins


def evaluate_run_name() -> str:
    """Name an evaluate flow run after its suite, its models and its day; Prefect calls this as the run begins.

    A name that somebody gave stays.
    """
    name = flow_run.name
    if name and not is_generated(name):
        return str(name)
    parameters = flow_run.parameters
    day = parameters.get("day") or flow_run.scheduled_start_time.date().isoformat()
    return f"{parameters['suite']}: {_shown(parameters.get('models'))}, {day}"


def is_generated(name: str) -> bool:
    """Tell whether Prefect made the name up: an adjective and an animal of the lists that it draws from."""
    adjective, dash, animal = name.partition("-")
    return bool(dash) and adjective in _words("adj_any") and animal in _words("subj")


@cache
def _words(kind: str) -> frozenset[str]:
    """Read the words of a list of `coolname`, and of the lists in it."""
    declared = cast("Mapping[str, Any]", config[kind])
    return frozenset(declared.get("words", ())).union(*map(_words, declared.get("lists", ())))


def tag_flow_run(suite: str, models: Sequence[str], run_id: str) -> None:
    """Tag the flow run with its suite, its models and its run id, beside the tags that it has."""
    context = FlowRunContext.get()
    if context is None or context.flow_run is None:
        return
    tags = dict.fromkeys([*context.flow_run.tags, suite, *models[:MOST_MODEL_TAGS], run_id])
    with get_client(sync_client=True) as client:
        client.update_flow_run(context.flow_run.id, tags=list(tags))


def day_of_run(asked: date | None = None) -> date:
    """Tell which day the current flow run is for; a run that is made up names the day that it makes up for."""
    scheduled: date = flow_run.scheduled_start_time.date()
    return asked or scheduled


def started_by(flow_run_id: str, attempt: int) -> str | None:
    """Tell who started the attempt: a schedule, a person in Prefect's UI, or whoever called; None where unknown."""
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
    return _asker(run, asked[0], attempt) if asked else None


def _asker(run: Any, state: Any, attempt: int) -> str:
    if attempt > 1:
        return PREFECT_UI if (state.message or "").startswith(_RETRIED_IN_UI) else API
    if run.auto_scheduled:
        return SCHEDULE
    if run.created_by and run.created_by.type == "AUTOMATION":
        return AUTOMATION
    # Its buttons send a message, and so does its form, an empty one where none was typed; clients send none.
    return API if state.message is None else PREFECT_UI


def _shown(models: Iterable[str] | str | None) -> str:
    names = [models] if isinstance(models, str) else [*(models or ())]
    if not names:
        return "baselines"
    further = len(names) - SHOWN_MODELS
    return ", ".join(names[:SHOWN_MODELS]) + (f" and {further} more" if further > 0 else "")
