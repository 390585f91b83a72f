"""The runner: one process that scores a lake's sessions as they are submitted, many at once.

`python -m service.scoring.runner LIMIT LAKE`. Each scoring is a flow run of its own, which Prefect shows, and which is
cancelled there or by the service. A process for each would take twelve seconds of a processor to come up.
"""

import logging
import signal
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import httpx
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.filters import FlowRunFilter
from prefect.client.schemas.objects import StateType
from prefect.client.schemas.responses import OrchestrationResult
from prefect.context import SyncClientContext
from prefect.deployments.runner import RunnerDeployment
from prefect.exceptions import PrefectException
from prefect.flow_engine import run_flow
from prefect.states import Cancelled, Pending
from prefect.types.entrypoint import EntrypointType

from core.errors import LakeError
from flows.score_session import give_up, queue_of, score_session
from providers.direct import warm_up as warm_up_direct
from storage.cached_table import OpenTable
from storage.lake import Lake
from suites.session_review.contract import RESULTS

# A question costs Prefect's server some 30 ms of processor, and a service mostly waits: it is asked often only where
# the table says that there may be something to do. The row of a scoring is written before its flow run is made.
LOOK_SECONDS = 0.25
AWAKE_SECONDS = 10.0  # after the table was written to
IDLE_SECONDS = 5.0  # between questions at other times, for flow runs that somebody made in Prefect
REMOTE_SECONDS = 0.5  # the same for a lake on object storage, where a look at the table is a request, too
CANCELLED_SECONDS = 1.0  # between questions which scorings under way are to be cancelled

logger = logging.getLogger("evalake.service")


def serve(limit: int, lake: str) -> None:
    """Run a lake's scorings as they are submitted, `limit` at a time, until told to end; those under way then fail."""
    declared = score_session.to_deployment(
        name=queue_of(lake),
        description=f"Scores sessions as `evalake serve` asks for them, for the lake {lake}.",
        tags=["evalake", "session_review"],
        entrypoint_type=EntrypointType.MODULE_PATH,
    )
    assert isinstance(declared, RunnerDeployment)  # outside of an event loop nothing is to be awaited
    deployment = declared.apply()
    assert isinstance(deployment, UUID)
    warm_up_direct()  # seconds, which the first scoring would take longer
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    with SyncClientContext.get_or_create() as context:  # one client for all flow runs
        table = None if "://" in lake else OpenTable(Lake(lake), RESULTS)
        scorings = _Scorings(context.client, deployment, limit, table)
        while not stopping.wait(LOOK_SECONDS):
            scorings.look()
        scorings.end()


class _Scorings:
    """The flow runs of one deployment, each on a thread. Used from one thread."""

    def __init__(self, client: SyncPrefectClient, deployment: UUID, limit: int, table: OpenTable | None) -> None:
        self._client, self._deployment, self._limit, self._table = client, deployment, limit, table
        self._threads = ThreadPoolExecutor(limit, "scoring")
        self._under_way: dict[UUID, tuple[str, Future[None]]] = {}  # by flow run: the scoring, and its thread's end
        self._cancelled: set[UUID] = set()  # of those under way
        self._complaint = ""
        self._version = -1  # of the table, when it was looked at last
        self._awake_until = self._scheduled_due = self._cancelled_due = 0.0

    def look(self) -> None:
        """Begin flow runs that wait, end cancelled ones, forget ended ones. Logs where Prefect does not answer."""
        try:
            self._end_cancelled()
            if self._may_be_scheduled():
                self._begin_scheduled()
        except (httpx.HTTPError, PrefectException, LakeError) as error:  # it is tried again at the next look
            if str(error) != self._complaint:
                logger.warning("the runner of scorings: %s", error)
            self._complaint = str(error)
        else:
            self._complaint = ""

    def end(self) -> None:
        """Give up all scorings under way; returns when they have ended."""
        for score_id, _ in self._under_way.values():
            give_up(score_id)
        self._threads.shutdown()

    def _may_be_scheduled(self) -> bool:
        """Tell whether to ask for flow runs that wait: soon after the table has moved, and else now and then."""
        now = time.monotonic()
        if self._table and (version := self._table.version()) != self._version:
            self._version, self._awake_until = version, now + AWAKE_SECONDS
        if now < self._scheduled_due and now > self._awake_until:
            return False
        self._scheduled_due = now + (IDLE_SECONDS if self._table else REMOTE_SECONDS)
        return True

    def _begin_scheduled(self) -> None:
        if len(self._under_way) >= self._limit:
            return
        for run in self._client.get_scheduled_flow_runs_for_deployments(
            [self._deployment], scheduled_before=datetime.now(UTC), limit=self._limit
        ):
            if run.id not in self._under_way and len(self._under_way) < self._limit:
                scoring = self._threads.submit(copy_context().run, self._score, run.id)
                self._under_way[run.id] = run.parameters["score_id"], scoring

    def _score(self, run_id: UUID) -> None:
        answer: OrchestrationResult[Any] = self._client.set_flow_run_state(run_id, Pending())
        if answer.state is not None and answer.state.is_pending():  # else it was cancelled, or another runner has it
            run_flow(score_session, flow_run=self._client.read_flow_run(run_id), return_type="state")

    def _end_cancelled(self) -> None:
        ended = {run_id: score for run_id, (_, score) in self._under_way.items() if score.done()}
        if ended or time.monotonic() >= self._cancelled_due:
            self._cancelled_due = time.monotonic() + CANCELLED_SECONDS
            for run_id in self._cancelling():
                if run_id in self._under_way:
                    self._cancelled.add(run_id)
                    give_up(self._under_way[run_id][0])
        for run_id, score in ended.items():
            if run_id in self._cancelled:
                self._client.set_flow_run_state(run_id, Cancelled(message="the scoring was cancelled"), force=True)
                self._cancelled.remove(run_id)
            del self._under_way[run_id]
            if (error := score.exception()) is not None:
                logger.warning("the flow run %s of a scoring ended: %s", run_id, error)

    def _cancelling(self) -> list[UUID]:
        """List the deployment's flow runs that are to be cancelled."""
        if not self._under_way:
            return []
        wanted = FlowRunFilter.model_validate(
            {"deployment_id": {"any_": [self._deployment]}, "state": {"type": {"any_": [StateType.CANCELLING]}}}
        )
        return [run.id for run in self._client.read_flow_runs(flow_run_filter=wanted)]


if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.argv[2])
