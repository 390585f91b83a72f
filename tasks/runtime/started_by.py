"""Who or what started an attempt of a flow run, as far as Prefect knows."""

from contextvars import ContextVar
from typing import Any
from uuid import UUID

import httpx
from prefect.client.orchestration import get_client
from prefect.exceptions import PrefectException

CALLER: ContextVar[str] = ContextVar("CALLER", default="Python")
"""Who calls flows in this process."""

PREFECT_UI, SCHEDULE, API, AUTOMATION = "Prefect UI", "schedule", "API", "automation"
COMMAND_LINE = "command line"

_AGAIN = ("AwaitingRetry", "Resuming")
_RETRIED_IN_UI = "Retry from the UI"  # as the message of the state that its button sets begins


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
