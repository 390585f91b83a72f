"""PostgreSQL as the Prefect server's database: more than one worker runs what is deployed, and no error is logged."""

from pathlib import Path

import pytest

from evalake.contracts.tables import RUNS
from tests.e2e.counts import are_there_once
from tests.e2e.processes import DATABASE_VARIABLE, ENDS, PrefectStack, require_no_errors
from tests.integration.flows.workplace import Workplace
from tests.servers.postgresql import new_database

pytestmark = pytest.mark.e2e

ITEMS = 160


def test_a_run_of_a_deployment_completes_on_a_server_with_postgresql(
    postgresql: str, work: Workplace, tmp_path: Path
) -> None:
    work.configure(batch_size=20)
    work.server.rule(reply='{"action": "BLOCK"}')
    with PrefectStack(tmp_path / "prefect", {DATABASE_VARIABLE: new_database(postgresql, "one_worker")}) as stack:
        stack.deploy()
        worker = stack.worker("--limit", "1")
        flow_run = stack.run("evaluate/command-guard-nightly", work.parameters(work.dataset(ITEMS)))
        assert stack.wait_for(flow_run, *ENDS) == "Completed"
        require_no_errors(worker.log)
    assert not (tmp_path / "prefect" / "home" / "prefect.db").exists()
    assert work.asked() == ITEMS
    assert work.rows(RUNS)["state"].to_list() == ["completed"]
    assert are_there_once(work, ITEMS)
