"""A failed run, retried as Prefect's UI does it: the same flow run goes on, and only what is missing is called."""

import pytest

from evalake.contracts.tables import CALLS, RUN_ATTEMPTS, RUNS
from evalake.suites.command_guard.contract import RESULTS
from tests.e2e.processes import PrefectStack
from tests.integration.flows.workplace import Workplace

DEPLOYMENT = "evaluate/command-guard-nightly"

pytestmark = pytest.mark.e2e


def test_a_retry_of_a_failed_run_calls_only_what_is_missing(stack: PrefectStack, work: Workplace) -> None:
    # Two attempts a call, so the first run gives up on ten of sixty items, and the second finds them answered.
    work.server.rule(contains="# 0000", faults=({"kind": "server_error", "times": 2},), reply='{"action": "BLOCK"}')
    flow_run = stack.run(DEPLOYMENT, work.parameters(work.dataset(60)))
    assert stack.wait_for(flow_run, "Failed", "Completed", "Crashed") == "Failed"
    first = work.rows(RUNS).row(0, named=True)
    assert (first["state"], first["calls_made"], first["calls_failed"]) == ("incomplete", 50, 10)
    assert work.asked() == 50 + 10 * 2

    work.server.reset()
    work.server.rule(contains="# 0000", reply='{"action": "BLOCK"}')  # the provider is well again
    stack.set_state(flow_run, "SCHEDULED", "AwaitingRetry", message="Retry from the UI")
    assert stack.wait_for(flow_run, "Completed", "Crashed") == "Completed"
    (again,) = work.rows(RUNS).iter_rows(named=True)
    assert again["started_at"] == first["started_at"]
    attempts = work.rows(RUN_ATTEMPTS).sort("attempt").select("attempt", "state", "started_by", "calls_made").rows()
    assert attempts == [(1, "incomplete", "API", 50), (2, "completed", "Prefect UI", 10)]
    assert (again["run_id"], again["flow_run_id"]) == (first["run_id"], flow_run)
    assert (again["state"], again["calls_made"], again["calls_from_ledger"]) == ("completed", 60, 0)
    assert work.asked() == 10
    assert work.rows(RESULTS)["sample_id"].n_unique() == work.rows(RESULTS).height == work.rows(CALLS).height == 60
