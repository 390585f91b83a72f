"""Suspension: a run issues no calls when its flow run leaves RUNNING: suspended, cancelled, or ended by someone else.

Prefect stops a suspended run only at its next task, while the calls of batches go on. Running calls are paid, so the
run waits for their replies. The ledger has all replies, and the resumed run continues from them.
"""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

import httpx
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import FlowRun, State
from prefect.exceptions import Abort, Pause, PrefectException, TerminationSignal
from prefect.states import Cancelled, Failed, Suspended

from evalake.core.errors import EvalakeError
from evalake.tasks.runtime.context import RunContext
from evalake.tasks.runtime.progress import background_thread
from evalake.tasks.runtime.resources import RunOverError, end_attempt, stop_calls
from evalake.tasks.runtime.runs import suspended_until

LOOK_SECONDS = 2.0
DRAIN_SECONDS = 30.0  # the longest wait for running calls

logger = logging.getLogger("evalake.runs")

_watched: set[tuple[str, str]] = set()  # attempts whose flow runs this process watches


class RunSuspendedError(EvalakeError):
    """A run without a deployment was suspended: only its command can continue it, not Prefect."""


@contextmanager
def watching(context: RunContext, flow_run: str) -> Iterator[None]:
    """End the calls of a run when its flow run leaves RUNNING: during the block, for all its batches in this process.

    Look at once, because the run may be suspended already, and every two seconds.
    """
    key = (context.run_id, context.attempt)
    _watched.add(key)
    try:
        with background_thread(partial(_look, context, UUID(flow_run)), "state-watch"):
            yield
    finally:
        _watched.discard(key)


@contextmanager
def stopping_with_flow_run(context: RunContext, flow_run: UUID | None) -> Iterator[None]:
    """Watch a run's flow run in a process of its batches, unless this process watches it already."""
    if flow_run is None or (context.run_id, context.attempt) in _watched:
        yield
        return
    with background_thread(partial(_look, context, flow_run), "state-watch"):
        yield


def _look(context: RunContext, flow_run: UUID, over: threading.Event) -> None:
    with get_client(sync_client=True) as client:
        while not (state := _stopping_state(client, flow_run)):
            if over.wait(LOOK_SECONDS):
                return
    reason = f"the flow run is {state.name}"
    logger.warning("%s: this process makes no more calls", reason)
    stop_calls(context, reason)
    if not over.wait(DRAIN_SECONDS):
        end_attempt(context)


def _stopping_state(client: SyncPrefectClient, flow_run: UUID) -> State[Any] | None:
    try:
        state = client.read_flow_run(flow_run).state
    except (httpx.HTTPError, PrefectException, OSError):
        return None  # an unreachable server is asked the next time
    return None if state is None or state.is_running() else state


INTERRUPTIONS = (RunOverError, TerminationSignal, Pause)
"""What a run raises that is ended from outside."""


@dataclass(frozen=True)
class Interruption:
    """The end of a run by its flow run's state."""

    state: State[Any]
    flow_run: FlowRun
    command: str  # continues the run where Prefect cannot

    @classmethod
    def of(cls, error: BaseException, flow_run_id: str, command: str) -> "Interruption | None":
        """Build the interruption where this error came from the flow run's state; else None."""
        if not isinstance(error, INTERRUPTIONS):
            return None
        with get_client(sync_client=True) as client:
            flow_run = client.read_flow_run(UUID(flow_run_id))
        if (state := flow_run.state) is None or state.is_running():
            return None
        return cls(state, flow_run, command)

    @property
    def is_cancelled(self) -> bool:
        """Whether somebody cancels the flow run."""
        return bool(self.state.is_cancelling() or self.state.is_cancelled())

    @property
    def message(self) -> str:
        """The message of the run, with the way to continue it."""
        if self.is_cancelled:
            return "cancelled; a rerun asks only for what is missing"
        if not self.state.is_paused():
            return f"its flow run became {self.state.name}; a rerun asks only for what is missing"
        if self.flow_run.deployment_id is None:
            return f"suspended; without a deployment, this command continues it: {self.command}"
        return suspended_until(self.state.state_details.pause_timeout)

    def leave(self) -> State[Any] | None:
        """End the flow run by its state; returns the final state, None for that of its error.

        Raises Pause or Abort, by which Prefect leaves the state of a deployment's run as it is; RunSuspendedError for
        a suspended run without a deployment.
        """
        if self.state.is_cancelling():
            cancelled: State[Any] = Cancelled(message="Cancelled: the replies so far are in the ledger.")
            if self.flow_run.deployment_id is None:
                return cancelled
            self._set(cancelled)
            raise Abort(self.message)  # Prefect's engine logs a returned state as an unexpected exception
        if not self.state.is_paused():
            return None
        if self.flow_run.deployment_id is None:
            self._set(Failed(message=self.message))  # a paused run cannot fail by its error
            raise RunSuspendedError(self.message)
        raise Pause(state=self._suspended())

    def _suspended(self) -> State[Any]:
        """Set a state from which Resume starts a new process, because this one ends."""
        if self.state.state_details.pause_reschedule:
            return self.state
        timeout = self.state.state_details.pause_timeout
        suspended: State[Any] = Suspended(pause_expiration_time=timeout) if timeout else Suspended()
        self._set(suspended)
        return suspended

    def _set(self, state: State[Any]) -> None:
        with get_client(sync_client=True) as client:
            client.set_flow_run_state(self.flow_run.id, state, force=True)
