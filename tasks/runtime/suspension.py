"""Suspension: a run looks at its flow run's state in Prefect, and asks nothing more once that is not running.

Prefect itself stops a suspended run only where its next task would begin, while the calls of batches go on. What was on
its way is still waited for, since it is paid for; what was answered is in the ledger, from which the run goes on.
"""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import httpx
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import FlowRun, State
from prefect.exceptions import Pause, PrefectException, TerminationSignal
from prefect.states import Cancelled, Failed, Suspended

from evalake.core.errors import EvalakeError
from evalake.tasks.runtime.context import RunContext
from evalake.tasks.runtime.heartbeat import beside
from evalake.tasks.runtime.resources import RunOverError, end_attempt, stop_calls

LOOK_SECONDS = 2.0
DRAIN_SECONDS = 30.0  # for which calls on their way are waited for

logger = logging.getLogger("evalake.runs")

_watched: set[tuple[str, str]] = set()  # attempts of runs whose state this process watches


class RunSuspendedError(EvalakeError):
    """A run without a deployment was suspended: Prefect cannot begin it again, but its command can."""


class StateWatch:
    """Looks at the states of flow runs, and ends the calls of a run once one of them is not running any more."""

    def __init__(self, context: RunContext, *flow_runs: str) -> None:
        self._context = context
        self._flow_runs = [UUID(flow_run) for flow_run in flow_runs]

    @contextmanager
    def looking(self) -> Iterator[None]:
        """Look now, and every two seconds while the block runs: a process may come up after its run was suspended."""
        with beside(self._look, "state-watch"):
            yield

    @contextmanager
    def looking_for_batches(self) -> Iterator[None]:
        """Look while the block runs, for the batches of the run that this process calls, too."""
        key = (self._context.run_id, self._context.attempt)
        _watched.add(key)
        try:
            with self.looking():
                yield
        finally:
            _watched.discard(key)

    def _look(self, over: threading.Event) -> None:
        with get_client(sync_client=True) as client:
            while not (state := self._stopping_state(client)):
                if over.wait(LOOK_SECONDS):
                    return
        self._stop(f"the flow run is {state.name}", over)

    def _stopping_state(self, client: SyncPrefectClient) -> State[Any] | None:
        try:
            states = [client.read_flow_run(flow_run).state for flow_run in self._flow_runs]
        except (httpx.HTTPError, PrefectException, OSError):
            return None  # a server that is out of reach is asked the next time
        return next((state for state in states if state is not None and not state.is_running()), None)

    def _stop(self, reason: str, over: threading.Event) -> None:
        logger.warning("%s: nothing more is asked here", reason)
        stop_calls(self._context, reason)
        if not over.wait(DRAIN_SECONDS):
            end_attempt(self._context)


@contextmanager
def heeding(context: RunContext, flow_run: UUID | None) -> Iterator[None]:
    """Watch the state of a run's flow run in a process of its batches, where nothing else does it already."""
    if flow_run is None or (context.run_id, context.attempt) in _watched:
        yield
        return
    with StateWatch(context, str(flow_run)).looking():
        yield


@dataclass(frozen=True)
class Interruption:
    """A run that ended because of its flow run's state, and how that is left."""

    state: State[Any]
    flow_run: FlowRun
    command: str  # that goes on where Prefect cannot

    @classmethod
    def of(cls, error: BaseException, flow_run_id: str, command: str) -> "Interruption | None":
        """Find out whether a run ended with this error because of its flow run's state; None where it did not."""
        if not isinstance(error, RunOverError | TerminationSignal | Pause):
            return None
        with get_client(sync_client=True) as client:
            flow_run = client.read_flow_run(UUID(flow_run_id))
        if (state := flow_run.state) is None or state.is_running():
            return None
        return cls(state, flow_run, command)

    @property
    def message(self) -> str:
        """What happened, and how the run goes on."""
        if self.state.is_cancelling() or self.state.is_cancelled():
            return "cancelled; a rerun asks only for what is missing"
        if not self.state.is_paused():
            return f"its flow run became {self.state.name}; a rerun asks only for what is missing"
        if self.flow_run.deployment_id is None:
            return f"suspended; a run without a deployment goes on by {self.command}"
        return "suspended; resumed, it goes on and asks only for what is missing"

    def leave(self) -> State[Any] | None:
        """End the flow run as its state demands; returns the state that it ends in, None for that of its error.

        Raises Pause, by which Prefect leaves a deployment's suspended run, RunSuspendedError without a deployment.
        """
        if self.state.is_cancelling():
            return Cancelled(message="Cancelled: what was answered is in the ledger.")
        if not self.state.is_paused():
            return None
        if self.flow_run.deployment_id is None:
            self._set(Failed(message=self.message))  # Prefect lets no paused run fail by itself
            raise RunSuspendedError(self.message)
        raise Pause(state=self._suspended())

    def _suspended(self) -> State[Any]:
        """Make the state one from which Resume begins a process: a mere pause would wait for this one, which ends."""
        if self.state.state_details.pause_reschedule:
            return self.state
        timeout = self.state.state_details.pause_timeout
        suspended: State[Any] = Suspended(pause_expiration_time=timeout) if timeout else Suspended()
        self._set(suspended)
        return suspended

    def _set(self, state: State[Any]) -> None:
        with get_client(sync_client=True) as client:
            client.set_flow_run_state(self.flow_run.id, state, force=True)
