"""What is older than [retention] allows goes with maintenance, on a real server; what is younger or not ours stays."""

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest
from prefect import flow, get_run_logger
from prefect.artifacts import create_markdown_artifact
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterFlowRunId
from prefect.context import FlowRunContext
from prefect.settings import PREFECT_LOCAL_STORAGE_PATH

from core.configuration import Retention, read_configuration
from core.errors import ConfigurationError
from flows.maintain import maintain
from tasks.jobs.retention import remove_expired
from tests.flows.workplace import Workplace

LATER = datetime.now(UTC) + timedelta(days=40)  # what ends now is old by then
OLD = (datetime.now(UTC) - timedelta(days=40)).timestamp()


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


def test_flow_runs_of_ours_go_with_their_artifacts_and_others_stay() -> None:
    mine, others = ours(), ours()
    with get_client(sync_client=True) as client:
        client.update_flow_run(mine, tags=["evalake", "command_guard"])
    policy = Retention(flow_runs_days=30)

    (young,) = [kind.removed for kind in remove_expired(policy)]
    (planned,) = [kind.removed for kind in remove_expired(policy, dry_run=True, now=LATER)]
    assert (young, kept(mine)) == (0, (True, 1))

    (removed,) = [kind.removed for kind in remove_expired(policy, now=LATER)]

    assert removed == planned >= 1
    assert (kept(mine), kept(others)) == ((False, 0), (True, 1))


def test_the_maintain_flow_removes_old_reports_and_results_and_nothing_else(
    work: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    work.run(work.dataset(1))
    monkeypatch.setenv("EVALAKE_REPORTS", str(work.folder / "reports"))
    storage = Path(PREFECT_LOCAL_STORAGE_PATH.value())
    result, stranger = storage / ("a" * 64), storage / ("b" * 64)
    result.write_text(json.dumps({"metadata": {"expiration": "2026-01-01T00:00:00Z"}, "result": "3"}))
    stranger.write_text("somebody's own file")
    old, young = (work.folder / "reports" / name / "report.html" for name in ("old", "young"))
    notes = old.with_name("notes.txt")
    for file in (old, old.with_name("report.json"), notes, young):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("what a model was asked")
    for file in (old, result, stranger):
        os.utime(file, (OLD, OLD))
    policy = "[retention]\nreports_days = 30\nresults_days = 2\n"
    work.configuration.write_text(policy)

    maintain(lake=work.lake.uri, dry_run=True, configuration_file=str(work.configuration))
    assert (old.exists(), result.exists()) == (True, True)
    maintain(lake=work.lake.uri, configuration_file=str(work.configuration))

    assert (old.exists(), old.with_name("report.json").exists(), result.exists()) == (False, False, False)
    assert (notes.exists(), young.exists(), stranger.exists()) == (True, True, True)


def test_a_working_directory_may_not_have_things_deleted(work: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    work.configuration.write_text("[retention]\nreports_days = 1\n")
    monkeypatch.chdir(work.folder)
    with pytest.raises(ConfigurationError, match="reports_days may not be set"):
        read_configuration()
