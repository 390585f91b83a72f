"""The gateway to Prefect: submits scorings as flow runs, sees how they are, and ends those that are lost."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from threading import Lock
from uuid import UUID

import httpx
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import ArtifactFilter, FlowRunFilter
from prefect.client.schemas.responses import DeploymentResponse
from prefect.exceptions import ObjectNotFound, PrefectException
from prefect.settings import PREFECT_UI_URL
from prefect.states import Cancelled, Cancelling, Crashed

from contracts.contract import Row
from core.errors import EvalakeError
from flows.score_session import DEPLOYMENT, NEVER, queue_of

FLOW = "score-session"
PAGE = 100  # flow runs asked for at once


class PrefectGatewayError(EvalakeError):
    """Prefect cannot be asked, or has nothing that serves scorings."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A scoring's flow run as Prefect describes it. `beat` moves while its process lives; None before it began."""

    flow_run_id: str
    state: str  # Prefect's state type, such as SCHEDULED, PENDING, RUNNING, CRASHED
    message: str | None
    progress: float
    beat: datetime | None
    since: datetime | None  # when it came into its state


def run_name(row: Row) -> str:
    """Name the flow run of a scoring, so that it can be found again.

    The name holds the request that began it: in two lakes, or in one that was made anew, scorings may have one id.
    """
    return f"{row['session_id'][:60]} {row['score_id'][:24]} {row['landed_by_run'][-12:]}"


class PrefectGateway:
    """One lake's way to Prefect. Safe for threads.

    Attributes:
        is_lasting: Whether the server outlives this process. One that does not has no pages that a link could lead to.
    """

    def __init__(self, lake: str, configuration_file: str | None) -> None:
        self._parameters = {"lake": lake, "configuration_file": configuration_file}
        self._queue = queue_of(lake)
        self._runs: dict[str, str] = {}
        self._opened: SyncPrefectClient | None = None
        self._opening = Lock()
        self.is_lasting = True

    def submit(self, rows: Sequence[Row]) -> None:
        """Submit scorings to Prefect, each once however often this is called; on failure `has` tells which will run."""
        with self._client("submit a scoring") as client:
            if (deployment := self._deployment(client)) is None:
                raise PrefectGatewayError("Prefect has nothing that serves the scorings of this lake")
            for row in rows:
                run = client.create_flow_run_from_deployment(
                    deployment.id,
                    parameters={**self._parameters, "score_id": row["score_id"]},
                    idempotency_key=f"{row['landed_by_run']} {row['score_id']}",
                    name=run_name(row),
                    tags=["evalake", "session_review"],
                )
                self._runs[row["score_id"]] = str(run.id)

    def has(self, row: Row) -> bool:
        """Tell whether Prefect is known to have a flow run of a scoring."""
        return bool(self._runs.get(row["score_id"]))

    def flow_run_of(self, row: Row) -> str | None:
        """Look up the id of a scoring's flow run; None where it has none, or where Prefect does not answer."""
        if row["score_id"] not in self._runs and row["asked_at"] is not None:
            try:
                self.look([row])
            except PrefectGatewayError:
                return None
            self._runs.setdefault(row["score_id"], "")
        return self._runs.get(row["score_id"]) or None

    @property
    def pages(self) -> str | None:
        """Where Prefect's own pages are; None where its server ends with this process."""
        if not self.is_lasting:
            return None
        url: str | None = PREFECT_UI_URL.value()
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
                for run in runs:
                    beat = beats.get(run.id)
                    score_id = names[run.name]
                    self._runs[score_id] = str(run.id)
                    seen[score_id] = Seen(
                        flow_run_id=str(run.id),
                        state=str(run.state.type.value) if run.state else "PENDING",
                        message=run.state.message if run.state else None,
                        progress=float(beat.data) if beat and isinstance(beat.data, int | float) else 0.0,
                        beat=beat.updated if beat else None,
                        since=run.state.timestamp if run.state else None,
                    )
        return seen

    def crash(self, flow_run_id: str, reason: str) -> None:
        """Mark a lost flow run as crashed in Prefect, too, so that nothing takes it up again."""
        with self._client("end a lost flow run") as client:
            client.set_flow_run_state(UUID(flow_run_id), Crashed(message=reason), force=True)

    def cancel(self, row: Row) -> None:
        """Cancel the flow run of a scoring: one that waits is not begun, the process of one that runs is ended."""
        if (seen := self.look([row]).get(row["score_id"])) is None:
            return
        state = Cancelling if seen.state == "RUNNING" else Cancelled
        with self._client("cancel a scoring") as client:
            client.set_flow_run_state(UUID(seen.flow_run_id), state(message="the scoring was cancelled"), force=True)

    def has_pool(self) -> bool | None:
        """Tell whether the deployment has a work pool, and so workers of its own; None where there is no deployment."""
        with self._client("look for its deployment") as client:
            deployment = self._deployment(client)
            return None if deployment is None else deployment.work_pool_name is not None

    def declared_at(self) -> datetime | None:
        """Look up when the deployment was last declared; None where there is none."""
        with self._client("look for its deployment") as client:
            deployment = self._deployment(client)
            return None if deployment is None else deployment.updated

    def idle_pool(self) -> str | None:
        """Name the deployment's work pool where none of its workers is online; None where one is."""
        with self._client("look for its workers") as client:
            deployment = self._deployment(client)
            name = deployment.work_pool_name if deployment else None
            status = client.read_work_pool(name).status if name else None
        return name if status is not None and status.value != "READY" else None

    @contextmanager
    def _client(self, what: str) -> Iterator[SyncPrefectClient]:
        """Lend the one client of all threads, and turn what it raises into one PrefectGatewayError.

        A client for each question takes more than four times the processor time: 46 ms, both sides, instead of 10.
        """
        try:
            with self._opening:
                self._opened = self._opened or get_client(sync_client=True)
            yield self._opened
        except (httpx.HTTPError, PrefectException, OSError, RuntimeError) as error:
            reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
            raise PrefectGatewayError(f"Prefect did not let the service {what}: {reason}") from error

    def _deployment(self, client: SyncPrefectClient) -> DeploymentResponse | None:
        """Find what serves this lake's scorings: the deployment that has workers, else the lake's own queue."""
        for name in (DEPLOYMENT, self._queue):
            try:
                deployment = client.read_deployment_by_name(f"{FLOW}/{name}")
            except ObjectNotFound:
                continue
            if name == self._queue or deployment.work_pool_name is not None:
                return deployment
        return None
