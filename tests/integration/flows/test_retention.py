"""What is older than [retention] allows goes with maintenance, on a real server; what is younger or not ours stays."""

from datetime import UTC, datetime, timedelta, tzinfo
from uuid import UUID

import pytest
from prefect import flow, get_run_logger
from prefect.artifacts import create_markdown_artifact
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterFlowRunId
from prefect.context import FlowRunContext

from evalake.admin.maintain import remove_expired
from evalake.core.configuration import Retention, read_configuration
from evalake.core.errors import ConfigurationError
from tests.integration.flows.workplace import Workplace

LATER = datetime.now(UTC) + timedelta(days=40)  # what ends now is old by then


@flow(persist_result=False)
def ours() -> UUID:
    """A flow run with a log line and an artifact."""
    get_run_logger().info("a line")
    create_markdown_artifact("a summary")
    context = FlowRunContext.get()
    assert context is not None
    assert context.flow_run is not None
    return context.flow_run.id


def kept(run: UUID) -> tuple[bool, int]:
    """Whether the server has a flow run, and how many artifacts of it."""
    with get_client(sync_client=True) as client:
        runs = client.read_flow_runs(flow_run_filter=None, limit=200)
        of_run = ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=[run]))
        return run in {each.id for each in runs}, len(client.read_artifacts(artifact_filter=of_run))


class MuchLater(datetime):
    """A clock that has gone on; a time that is only said to be later counts as the clock has it."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> "MuchLater":
        return cls.fromtimestamp(LATER.timestamp(), tz)


def test_flow_runs_of_ours_go_with_their_artifacts_and_others_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    mine, others = ours(), ours()
    with get_client(sync_client=True) as client:
        client.update_flow_run(mine, tags=["evalake", "command_guard"])
    policy = Retention(flow_runs_days=30)

    (young,) = [kind.removed for kind in remove_expired(policy)]
    monkeypatch.setattr("evalake.admin.maintain.datetime", MuchLater)
    (planned,) = [kind.removed for kind in remove_expired(policy, dry_run=True)]
    assert (young, kept(mine)) == (0, (True, 1))

    (removed,) = [kind.removed for kind in remove_expired(policy)]

    assert removed == planned >= 1
    assert (kept(mine), kept(others)) == ((False, 0), (True, 1))


def test_a_working_directory_may_not_have_things_deleted(work: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    work.configuration.write_text("[retention]\nreports_days = 1\n")
    monkeypatch.chdir(work.folder)
    with pytest.raises(ConfigurationError, match=r"may not set .*reports_days"):
        read_configuration()
