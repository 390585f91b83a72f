"""Naming: what the flow run of a run is called in the Prefect UI, and the tags by which it is found there."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, cast

from coolname.data import config
from prefect.client.orchestration import get_client
from prefect.context import FlowRunContext
from prefect.runtime import flow_run

SHOWN_MODELS = 3
MOST_MODEL_TAGS = 20


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


def _shown(models: Iterable[str] | str | None) -> str:
    names = [models] if isinstance(models, str) else [*(models or ())]
    if not names:
        return "baselines"
    further = len(names) - SHOWN_MODELS
    return ", ".join(names[:SHOWN_MODELS]) + (f" and {further} more" if further > 0 else "")
