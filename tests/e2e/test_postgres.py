"""PostgreSQL as the Prefect server's database: more than one worker runs what is deployed, and no error is logged."""

from pathlib import Path

import pytest

from contracts.tables import RUNS
from tests.e2e.counts import are_there_once
from tests.e2e.processes import DATABASE_VARIABLE, PrefectStack, Process, require_no_errors
from tests.e2e.test_shards import ENDS, shards_of
from tests.flows.workplace import Workplace
from tests.servers.postgresql import new_database

pytestmark = pytest.mark.e2e

ITEMS = 160


def test_two_workers_share_a_run_of_a_deployment(postgresql: str, work: Workplace, tmp_path: Path) -> None:
    work.configure(batch_size=20)
    work.server.rule(reply='{"action": "BLOCK"}', latency=1.0)
    with PrefectStack(tmp_path / "prefect", {DATABASE_VARIABLE: new_database(postgresql, "two_workers")}) as stack:
        stack.deploy()
        workers = [stack.worker("--limit", "1") for _ in range(2)]  # one flow run each
        flow_run = stack.run("evaluate/command-guard-nightly", work.parameters(work.dataset(ITEMS), shards=2))
        assert stack.wait_for(flow_run, *ENDS) == "Completed"
        (shard,) = shards_of(stack, flow_run)
        assert shard["state_name"] == "Completed"
        assert {taker(workers, flow_run), taker(workers, shard["id"])} == {0, 1}
        for worker in workers:
            require_no_errors(worker.log)
    assert not (tmp_path / "prefect" / "home" / "prefect.db").exists()
    assert work.asked() == ITEMS
    assert work.rows(RUNS)["state"].to_list() == ["completed"]
    assert are_there_once(work, ITEMS)


def taker(workers: list[Process], flow_run: str) -> int:
    """Which of the workers took a flow run. Both may have tried."""
    logs = [worker.log.read_text() for worker in workers]
    tried = [n for n, log in enumerate(logs) if f"submitting flow run '{flow_run}'" in log]
    (number,) = [n for n in tried if f"Aborted submission of flow run '{flow_run}'" not in logs[n]]
    return number
