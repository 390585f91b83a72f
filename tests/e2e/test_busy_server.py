"""A server that answers 503 for a while, as where SQLite is locked: a worker waits, and its run begins later."""

from pathlib import Path

import pytest

from tests.e2e.processes import PrefectStack
from tests.servers.busy import BusyServer

pytestmark = pytest.mark.e2e

DEPLOYMENT = "maintain/maintenance-daily"
TIMES = 8  # more often than Prefect's own client asks again


def test_a_run_whose_worker_finds_the_server_busy_completes(stack: PrefectStack, tmp_path: Path) -> None:
    where = {"EVALAKE_LAKE": str(tmp_path / "lake")}
    with stack.pool(DEPLOYMENT) as pool, BusyServer(stack.url, TIMES) as busy:
        begin = ("evalake.cli", "prefect", "worker", "start", "--pool", pool)
        worker = stack.start(*begin, PREFECT_API_URL=busy.url, **where)
        run = stack.run(DEPLOYMENT, {})
        assert stack.wait_for(run, "Completed", "Failed", "Crashed") == "Completed"
        deployment = stack.get(f"/flow_runs/{run}")["deployment_id"]
        assert busy.refused[f"POST /api/flow_runs/{run}/set_state"] == TIMES
        assert busy.refused[f"GET /api/deployments/{deployment}"] == TIMES
        assert worker.popen.poll() is None
        worker.stop()
