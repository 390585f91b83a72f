"""What the doctor says of a server on which something does not work."""

import json
import re
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings

from evalake.admin import doctor
from evalake.admin.doctor import Diagnosis, Level, Place, examine
from evalake.core.configuration import Configuration
from evalake.storage.lake import Lake
from tests.e2e.processes import PrefectStack
from tests.integration.cli.command import evalake_here

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def stalled(idle_server: PrefectStack) -> Iterator[PrefectStack]:
    """A server whose scheduler plans nothing, with one deployment that has a schedule, and no worker."""
    idle_server.post("/work_pools/", {"name": "evalake", "type": "process"})
    flow = idle_server.post("/flows/", {"name": "maintain"})
    deployment = {
        "name": "maintenance-daily",
        "flow_id": flow["id"],
        "tags": ["evalake"],
        "work_pool_name": "evalake",
        "schedules": [{"schedule": {"cron": "0 5 * * *", "timezone": "UTC"}, "active": True}],
        "parameters": {"judges": ["openai/gpt-4o"]},
    }
    made = idle_server.post("/deployments/", deployment)
    yield idle_server
    for path in (f"/deployments/{made['id']}", "/work_pools/evalake"):
        idle_server.delete(path)


def look(stack: PrefectStack, folder: Path, deploying: bool = False) -> dict[str, Diagnosis]:
    """What each check finds."""
    place = Place(Lake(str(folder / "lake")), Configuration(), deploying)
    with temporary_settings({PREFECT_API_URL: stack.url}):
        return {check.name: found for check, found in examine(place)}


def told(stack: PrefectStack, folder: Path, *options: str, key: str) -> "subprocess.CompletedProcess[str]":
    """What the command says to somebody with this key."""
    with temporary_settings({PREFECT_API_URL: stack.url}):
        environment = {"PREFECT_API_URL": stack.url, "OPENAI_API_KEY": key}
        return evalake_here("doctor", "--lake", folder / "lake", *options, folder=folder, **environment)


def test_a_scheduler_that_plans_nothing_is_a_problem_after_its_first_minute(
    stalled: PrefectStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "FIRST_MINUTE", timedelta(days=1))
    assert look(stalled, tmp_path)["scheduler"].level == Level.HINT
    monkeypatch.setattr(doctor, "FIRST_MINUTE", timedelta())
    found = look(stalled, tmp_path)["scheduler"]
    assert found.level == Level.PROBLEM
    assert "no run is planned for 1 of 1 schedules: maintenance-daily" in found.message
    assert "SQLAlchemy" in found.mend
    assert look(stalled, tmp_path, deploying=True)["scheduler"].level == Level.HINT


def test_a_worker_that_never_came_and_runs_that_wait_for_it_are_problems_but_not_while_deploying(
    stalled: PrefectStack, tmp_path: Path
) -> None:
    (deployment,) = stalled.post("/deployments/filter", {})
    due = (datetime.now(UTC) - timedelta(minutes=5)).isoformat()
    scheduled = {"type": "SCHEDULED", "name": "Scheduled", "state_details": {"scheduled_time": due}}
    run = stalled.post(f"/deployments/{deployment['id']}/create_flow_run", {"state": scheduled})
    stalled.set_state(run["id"], "SCHEDULED", "Late")  # as Prefect does: tests/e2e/test_watched.py
    for deploying, level in ((False, Level.PROBLEM), (True, Level.HINT)):
        found = look(stalled, tmp_path, deploying)
        assert {found["worker"].level, found["late runs"].level} == {level}
        assert "no worker has polled the pool evalake yet" in found["worker"].message
        assert "1 runs are late" in found["late runs"].message
        assert "prefect worker start --pool evalake" in found["worker"].mend


def test_a_silent_worker_is_told_by_name(
    stalled: PrefectStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stalled.post("/work_pools/evalake/workers/heartbeat", {"name": "night-worker"})
    monkeypatch.setattr(doctor, "LATEST_HEARTBEAT", timedelta(days=1))
    assert look(stalled, tmp_path)["worker"].level == Level.OK
    monkeypatch.setattr(doctor, "LATEST_HEARTBEAT", timedelta())
    found = look(stalled, tmp_path)["worker"]
    assert found.level == Level.PROBLEM
    assert re.search("night-worker was last heard of [0-9]+ min ago", found.message)


def test_the_command_ends_with_1_and_names_the_missing_key_of_a_deployed_model_and_prints_none_that_is_there(
    stalled: PrefectStack, tmp_path: Path
) -> None:
    done = told(stalled, tmp_path, "--json", key="")
    assert done.returncode == 1, done.stderr
    said = json.loads(done.stdout)
    assert said["healthy"] is False
    (keys,) = [check for check in said["checks"] if check["check"] == "keys"]
    assert (keys["level"], keys["message"]) == (
        "problem",
        "1 of 1 models: model openai/gpt-4o needs a key: set OPENAI_API_KEY",
    )
    done = told(stalled, tmp_path, key="sk-not-to-be-seen-0123456789")
    assert "ok       keys            the keys of 1 model are set" in done.stdout
    assert "not-to-be-seen" not in done.stdout + done.stderr
