"""The queue: each scoring is a flow run in Prefect, which this service runs itself or leaves to a pool's workers."""

import logging
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from datetime import datetime
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any
from uuid import UUID, uuid4

import httpx
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import ArtifactFilter, FlowRunFilter
from prefect.client.schemas.objects import FlowRun, State
from prefect.client.schemas.responses import DeploymentResponse, OrchestrationResult
from prefect.context import SyncClientContext
from prefect.exceptions import ObjectNotFound, PrefectException
from prefect.flow_engine import run_flow
from prefect.settings import PREFECT_UI_URL
from prefect.states import Cancelled, Cancelling, Crashed, Pending, Scheduled

from evalake.contracts.contract import Row
from evalake.core.errors import EvalakeError
from evalake.flows.score_session import DEPLOYMENT, NEVER, give_up, score_session

PAGE = 100  # flow runs asked for at once
END_SECONDS = 6.0  # for scorings that were given up to land that

logger = logging.getLogger("evalake.service")


class QueueError(EvalakeError):
    """Prefect does not answer, or refuses."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A scoring's flow run as Prefect describes it. `beat` moves while its process lives; None before it began."""

    run: FlowRun
    state: State
    progress: float
    beat: datetime | None


def run_name(row: Row) -> str:
    """Name the flow run of a scoring, so that it can be found again.

    The name holds the request that began it: two lakes may have a scoring of the same id.
    """
    return f"{row['session_id'][:60]} {row['score_id'][:24]} {row['landed_by_run'][-12:]}"


class Queue:
    """One lake's scorings as flow runs. Safe for threads.

    Attributes:
        under_way: The scorings that this process runs now.
        is_lasting: Whether the Prefect server outlives this process. One that does not shows no pages.
    """

    def __init__(self, lake: str, configuration_file: str | None, at_once: int) -> None:
        self._parameters = {"lake": lake, "configuration_file": configuration_file}
        self._at_once = at_once
        self._runs: dict[str, str] = {}
        self._opened: SyncPrefectClient | None = None
        self._lock = Lock()
        self._waiting: SimpleQueue[tuple[str, UUID]] = SimpleQueue()
        self._known: set[str] = set()  # what waits, and what is under way
        self._cancelled: set[str] = set()
        self._until = math.inf  # when what is under way is given up, as the service ends
        self.under_way: set[str] = set()
        self.is_lasting = True

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run submitted scorings during a block, as many at once as configured."""
        with SyncClientContext.get_or_create():  # one client for all flow runs
            for _ in range(self._at_once):
                Thread(target=copy_context().run, args=(self._work,), name="scoring", daemon=True).start()
            try:
                yield
            finally:
                self.drain(0.0)

    def submit(self, rows: Sequence[Row]) -> None:
        """Make a flow run of each scoring; on failure `has` tells which will run."""
        made: list[tuple[str, FlowRun]] = []
        ids = {row["score_id"] for row in rows}
        self._known |= ids  # begun together: a Prefect server on SQLite lets its clients wait where two write at once
        try:
            with self._client("submit a scoring") as client:
                pool = self._deployment(client)
                for row in rows:
                    run = self._make_run(client, pool, row)
                    self._runs[row["score_id"]] = str(run.id)
                    made.append((row["score_id"], run))
        finally:
            self._known -= ids
            for score_id, run in made:
                self.take(score_id, run)

    def take(self, score_id: str, run: FlowRun) -> None:
        """Queue a scheduled flow run here, unless it is of a pool, or here already.

        Of several services that take the same one, Prefect lets one begin it.
        """
        with self._lock:
            if run.deployment_id is None and score_id not in self._known:
                self._known.add(score_id)
                self._waiting.put((score_id, run.id))

    def has(self, row: Row) -> bool:
        """Tell whether Prefect is known to have a flow run of a scoring."""
        return bool(self._runs.get(row["score_id"]))

    def awaits(self, row: Row) -> bool:
        """Tell whether a scoring waits here for its turn."""
        return row["score_id"] in self._known - self.under_way

    def flow_run_of(self, row: Row) -> str | None:
        """Look up the id of a scoring's flow run; None where it has none, or where Prefect does not answer."""
        if row["score_id"] not in self._runs and row["asked_at"] is not None:
            try:
                self.look([row])
            except QueueError:
                return None
            self._runs.setdefault(row["score_id"], "")
        return self._runs.get(row["score_id"]) or None

    @property
    def pages(self) -> str | None:
        """The address of Prefect's own pages; None if its server ends with this process."""
        url: str | None = PREFECT_UI_URL.value() if self.is_lasting else None
        return url

    def look(self, rows: Sequence[Row]) -> dict[str, Seen]:
        """Read the flow runs of some scorings, by score id; those that Prefect does not know are left out."""
        seen: dict[str, Seen] = {}
        with self._client("look at its flow runs") as client:
            for start in range(0, len(rows), PAGE):
                names = {run_name(row): row["score_id"] for row in rows[start : start + PAGE]}
                runs = client.read_flow_runs(flow_run_filter=FlowRunFilter(name={"any_": list(names)}))
                wanted = {"flow_run_id": {"any_": [run.id for run in runs]}, "type": {"any_": ["progress"]}}
                artifacts = client.read_artifacts(artifact_filter=ArtifactFilter(**wanted)) if runs else []
                # The latest of each flow run, which has several where it was run again
                in_order = sorted(artifacts, key=lambda artifact: artifact.updated or NEVER)
                beats = {artifact.flow_run_id: artifact for artifact in in_order}
                for run in sorted(runs, key=lambda run: run.created or NEVER):  # a second turn's is the later one
                    beat, score_id = beats.get(run.id), names[run.name]
                    self._runs[score_id] = str(run.id)
                    progress = float(beat.data) if beat and isinstance(beat.data, int | float) else 0.0
                    seen[score_id] = Seen(run, run.state or Pending(), progress, beat.updated if beat else None)
        return seen

    def crash(self, run: FlowRun, reason: str) -> None:
        """Mark a lost flow run as crashed in Prefect, too, so that nothing takes it up again."""
        with self._client("end a lost flow run") as client:
            client.set_flow_run_state(run.id, Crashed(message=reason), force=True)

    def cancel(self, row: Row) -> None:
        """Cancel the flow run of a scoring: one that waits is not begun, one that runs is ended."""
        if (seen := self.look([row]).get(row["score_id"])) is not None:
            state = Cancelling if seen.state.is_running() else Cancelled
            with self._client("cancel a scoring") as client:
                client.set_flow_run_state(seen.run.id, state(message="the scoring was cancelled"), force=True)

    def give_up(self, score_id: str) -> None:
        """End a scoring of this process whose flow run is to be cancelled."""
        if score_id in self.under_way:
            self._cancelled.add(score_id)
            give_up(score_id)

    def drain(self, seconds: float) -> None:
        """Begin no further scoring, wait for running ones, and end those that take longer; returns after their end.

        Waiting ones stay scheduled in Prefect, for the next service of the lake.
        """
        self._until = min(self._until, time.monotonic() + seconds)  # a second call shortens the first
        while self.under_way and (now := time.monotonic()) < self._until + END_SECONDS:
            if now >= self._until:
                for score_id in tuple(self.under_way):
                    give_up(score_id)
            time.sleep(0.1)

    def idle_pool(self) -> str | None:
        """Name the work pool of scorings if none of its workers is online, else None."""
        with self._client("look for its workers") as client:
            deployment = self._deployment(client)
            if deployment is None or deployment.work_pool_name is None:
                return None
            pool = client.read_work_pool(deployment.work_pool_name)
        return pool.name if pool.status is not None and pool.status.value != "READY" else None

    def _make_run(self, client: SyncPrefectClient, pool: DeploymentResponse | None, row: Row) -> FlowRun:
        parameters = {**self._parameters, "score_id": row["score_id"]}
        name, tags = run_name(row), ["evalake", "session_review"]
        if pool is None:
            return client.create_flow_run(score_session, name, parameters, tags=tags, state=Scheduled())
        key = f"{row['landed_by_run']} {row['score_id']}"
        if row["status"] == "completed":  # its second turn, which may be asked for again
            key = f"{key} {uuid4()}"
        return client.create_flow_run_from_deployment(
            pool.id, parameters=parameters, idempotency_key=key, name=name, tags=tags
        )

    def _work(self) -> None:
        while True:
            score_id, run_id = self._waiting.get()
            self.under_way.add(score_id)  # before it looks at the end, and `drain` the other way round
            if self._until == math.inf:  # else it stays scheduled
                self._score(score_id, run_id)
            self.under_way.discard(score_id)

    def _score(self, score_id: str, run_id: UUID) -> None:
        try:
            with self._client("run a scoring") as client:
                answer: OrchestrationResult[Any] = client.set_flow_run_state(run_id, Pending())
                if answer.state is None or not answer.state.is_pending():
                    return  # it was cancelled, or another service has it
                run = client.read_flow_run(run_id)
            run_flow(score_session, flow_run=run, return_type="state")
            if score_id in self._cancelled:
                with self._client("tell that a scoring is cancelled") as client:
                    client.set_flow_run_state(run_id, Cancelled(message="the scoring was cancelled"), force=True)
        except Exception as error:  # noqa: BLE001 - after any error, the next scoring is taken
            logger.warning("the flow run %s of a scoring ended: %s", run_id, error)
        finally:
            self._known.discard(score_id)
            self._cancelled.discard(score_id)

    @contextmanager
    def _client(self, what: str) -> Iterator[SyncPrefectClient]:
        """Lend the shared client, and convert its exceptions to a QueueError.

        A client for each question takes more than four times the processor time: 46 ms, both sides, instead of 10.
        """
        try:
            with self._lock:
                self._opened = self._opened or get_client(sync_client=True)
            yield self._opened
        except (httpx.HTTPError, PrefectException, OSError, RuntimeError) as error:
            reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
            raise QueueError(f"Prefect did not let the service {what}: {reason}") from error

    def _deployment(self, client: SyncPrefectClient) -> DeploymentResponse | None:
        """Find the deployment that has workers; None where this service scores itself."""
        try:
            deployment = client.read_deployment_by_name(f"{score_session.name}/{DEPLOYMENT}")
        except ObjectNotFound:
            return None
        return deployment if deployment.work_pool_name is not None else None
