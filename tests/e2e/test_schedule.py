"""Schedules fire: what `make deploy` has scheduled is started by the server's clock, and run by a worker."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.checkout import checkout
from tests.e2e.processes import PrefectStack, wait_until
from tests.e2e.test_deploy import make_deploy
from tests.integration.cli.command import evalake

pytestmark = pytest.mark.e2e

DEPLOYMENT = "maintain/maintenance-daily"
DAILY = 'cron: "0 5 * * *"'
OFTEN = 'cron: "* * * * * */30"'  # the sixth field is seconds: nobody wants to wait for the next minute
SECONDS = 90.0


def test_a_scheduled_run_is_made_by_the_server_and_completed_by_a_worker(tmp_path: Path) -> None:
    project = checkout(tmp_path / "project", {DAILY: OFTEN})
    with PrefectStack(tmp_path / "prefect") as stack:
        deployed = make_deploy(stack.environment, project)
        assert deployed.returncode == 0, deployed.stdout + deployed.stderr
        assert "hint     worker          no worker has polled" in deployed.stdout
        stack.worker(EVALAKE_LAKE=str(tmp_path / "lake"))
        deployment = stack.get(f"/deployments/name/{DEPLOYMENT}")
        assert not deployment["paused"]

        def first_ended() -> dict[str, Any] | None:
            runs = stack.post("/flow_runs/filter", {"flow_runs": {"deployment_id": {"any_": [deployment["id"]]}}})
            ended = [run for run in runs if run["state_type"] in ("COMPLETED", "FAILED", "CRASHED")]
            return min(ended, key=lambda run: run["expected_start_time"]) if ended else None

        run = wait_until(first_ended, "the end of a scheduled run", SECONDS)
        assert (run["state_name"], run["auto_scheduled"], run["created_by"]["type"]) == ("Completed", True, "SCHEDULE")
        seen = evalake("doctor", "--lake", tmp_path / "lake", "--json", folder=tmp_path, **stack.environment)
        assert seen.returncode == 0, seen.stdout
        levels = {check["check"]: check["level"] for check in json.loads(seen.stdout)["checks"]}
        assert [levels[name] for name in ("server", "deployments", "scheduler", "worker")] == ["ok"] * 4
