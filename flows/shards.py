"""Shards: several flow runs ask the items of one run, on as many workers as take them; the run does the rest."""

import logging
import os
import time
from dataclasses import asdict
from typing import Any, cast
from uuid import uuid4

from prefect import flow
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import ArtifactFilter, FlowRunFilter
from prefect.client.schemas.objects import TERMINAL_STATES, FlowRun, State
from prefect.deployments import run_deployment
from prefect.exceptions import ObjectNotFound
from prefect.runtime import flow_run
from prefect.states import Cancelled, Cancelling

from contracts.tables import CALLS
from core.errors import ConfigurationError
from providers.telemetry import current_trace
from tasks.runtime import progress, suspension
from tasks.runtime.context import RunContext
from tasks.runtime.logs import observed
from tasks.runtime.resources import RunOverError, end_attempt, is_over
from tasks.runtime.runner import task_runner
from tasks.runtime.shards import Shard, ShardCollector
from tasks.steps.batch import require_ledger
from tasks.steps.preflight import Order, Plan, check
from tasks.steps.walk import walk

DEPLOYMENT = "evaluate-shard/on-demand"
# A shard without a sign of life for so long is given up. It gives one every two seconds, once its process is up.
PATIENCE = "EVALAKE_SHARD_PATIENCE_SECONDS"
PATIENCE_SECONDS = 120.0
LOOK_SECONDS = 1.0
DRAIN_SECONDS = 2 * suspension.DRAIN_SECONDS  # within which a shard of a stopped run has ended by itself

logger = logging.getLogger("evalake.shards")


@flow(name="evaluate-shard", flow_run_name="shard-{shard}", persist_result=False, task_runner=task_runner())
def evaluate_shard(
    shard: str, run_id: str, ledger_id: str, order: Order, trace: str | None = None, belongs_to: str | None = None
) -> None:
    """Ask one shard of a run's items. Started by the `evaluate` flow; what it is answered is in the ledger.

    Args:
        shard: Which one, such as 2/4.
        run_id: The run that the calls are made for.
        ledger_id: The Delta table id of the run's ledger.
        order: What the run was asked for.
        trace: The run's own span, where telemetry is on.
        belongs_to: The flow run of the run: where that is suspended or cancelled, its shards ask nothing more.
    """
    part = Shard.parse(shard)
    with observed(f"evaluate shard {shard}", str(flow_run.id), run_id, order.suite, trace):
        plan = check(order)
        require_ledger(plan.lake, ledger_id)
        here, span = uuid4().hex, current_trace()
        context = RunContext(run_id, plan.suite.name, plan.lake, plan.configuration, here, span, plan.ceiling)
        watch = suspension.StateWatch(context, str(flow_run.id), *([belongs_to] if belongs_to else []))
        try:
            with watch.looking_for_batches():
                _ask(context, plan, part)
        finally:
            end_attempt(context)


def require_shards(shards: int) -> None:
    """Raise ConfigurationError where flow runs of shards are wanted and cannot be started."""
    if shards == 1:
        return
    _patience()
    try:
        with get_client(sync_client=True) as client:
            client.read_deployment_by_name(DEPLOYMENT)
    except ObjectNotFound as error:
        raise ConfigurationError(
            f"a run in {shards} shards needs the deployment {DEPLOYMENT} on the Prefect server: make deploy"
        ) from error


def _patience() -> float:
    given = os.environ.get(PATIENCE) or str(PATIENCE_SECONDS)
    try:
        return float(given)
    except ValueError as error:
        raise ConfigurationError(f"{PATIENCE} is a number of seconds, not {given}") from error


def ask_in_shards(context: RunContext, plan: Plan, shards: int) -> None:
    """Have the items of a run asked in that many shards: the first here, the others by flow runs of their own.

    On return none is being asked any more. What a shard leaves open, because no worker had room for it or because its
    worker died, is for the run's own walk.
    """
    ledger_id = str(context.lake.ensure(CALLS).metadata().id)
    with get_client(sync_client=True) as client:
        going_on = _unfinished(client, context.run_id)  # where an earlier attempt of this run was killed
        parts = [Shard(number, shards) for number in range(2, shards + 1)]
        children = [
            _Child(client, going_on.get(_name(part)) or _start(context, plan, part, ledger_id)) for part in parts
        ]
        try:
            _ask(context, plan, Shard(1, shards))
            for child in children:
                if child.look().is_scheduled():
                    child.end(Cancelled(message="no worker had room for it: the run asks its items itself"))
            while children := [child for child in children if not child.is_over()]:
                if is_over(context):
                    raise RunOverError(f"the run {context.run_id} was stopped; its shards end")
                time.sleep(LOOK_SECONDS)
        except BaseException as error:
            if isinstance(error, RunOverError):
                _let_drain(children)
            for child in children:
                child.end(Cancelling(message="the run that it belongs to was ended"))
            raise


def _let_drain(children: list["_Child"]) -> None:
    """Let shards of a stopped run end by themselves: they see its state, too, and keep what they have asked already."""
    deadline = time.monotonic() + DRAIN_SECONDS
    while time.monotonic() < deadline and any(child.look().is_running() for child in children):
        time.sleep(LOOK_SECONDS)


def _ask(context: RunContext, plan: Plan, shard: Shard) -> None:
    title = f"{plan.suite.name} {context.run_id} shard {shard}"
    with progress.shown(context.run_id, title, plan.items, str(shard)):
        walk(context, plan, ShardCollector(), shard)


def _name(shard: Shard) -> str:
    return f"shard-{shard}"


def _start(context: RunContext, plan: Plan, shard: Shard, ledger_id: str) -> FlowRun:
    started = run_deployment(
        DEPLOYMENT,
        parameters={
            "shard": str(shard),
            "run_id": context.run_id,
            "ledger_id": ledger_id,
            "order": asdict(plan.settled_order),
            "trace": context.trace,
            "belongs_to": str(flow_run.id),
        },
        flow_run_name=_name(shard),
        tags=[context.run_id],
        idempotency_key=f"{context.run_id}-{shard}-{context.attempt}",
        timeout=0,
    )
    return cast(FlowRun, started)  # not a coroutine, because this flow is not one


def _unfinished(client: SyncPrefectClient, run_id: str) -> dict[str, FlowRun]:
    """Find the flow runs of a run's shards that have not ended, by name."""
    shards = {"tags": {"all_": [run_id]}, "name": {"like_": "shard-"}}  # the run itself has its tag, too
    going_on = {"state": {"type": {"not_any_": list(TERMINAL_STATES)}}}
    known = FlowRunFilter.model_validate({**shards, **going_on})
    return {str(run.name): run for run in client.read_flow_runs(flow_run_filter=known)}


class _Child:
    """The flow run of a shard, and when it last gave a sign of life."""

    def __init__(self, client: SyncPrefectClient, run: FlowRun) -> None:
        self._client, self._id = client, run.id
        self._sign: Any = None
        self._seen = time.monotonic()

    def look(self) -> State[Any]:
        """Read its state. A change of this, or of its progress artifact, is a sign of life."""
        state = cast(State[Any], self._client.read_flow_run(self._id).state)
        wanted = ArtifactFilter.model_validate({"flow_run_id": {"any_": [self._id]}})
        shown = self._client.read_artifacts(artifact_filter=wanted)
        if (sign := (state.id, [artifact.updated for artifact in shown])) != self._sign:
            self._sign, self._seen = sign, time.monotonic()
        return state

    def is_over(self) -> bool:
        """Tell whether it asks nothing any more; it is cancelled where it has given no sign of life for too long."""
        if (state := self.look()).is_final():
            if not state.is_completed():
                logger.warning("a shard ended %s (%s): the run asks what it left open", state.name, state.message)
            return True
        if time.monotonic() - self._seen < _patience():
            return False
        self.end(Cancelled(message="it gave no sign of life any more: the run asks its items itself"))
        return True

    def end(self, state: State[Any]) -> None:
        """Set it to an end state, unless it has ended."""
        if not self.look().is_final():
            self._client.set_flow_run_state(self._id, state)
