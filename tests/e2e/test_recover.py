"""Runs that end otherwise than planned, and are run again: what the ledger holds is never asked for twice."""

from collections.abc import Callable
from pathlib import Path

import pytest

from evalake.contracts.tables import METRIC_SNAPSHOTS, RUNS
from tests.e2e.counts import are_there_once
from tests.e2e.processes import PrefectStack, wait_until
from tests.integration.flows.workplace import LIMITS, Workplace

pytestmark = pytest.mark.e2e

DEPLOYMENT = "evaluate/command-guard-nightly"
CONCURRENCY = 8  # by LIMITS
LATENCY_SECONDS = 0.4
ITEMS = 120
ENDS = ("Completed", "Failed", "Crashed")
MOST_RETRIES = 5  # for a minute, Prefect's runner can end a retry of what was cancelled (docs/operations.md)


@pytest.fixture
def work(work: Workplace) -> Workplace:
    work.configure(batch_size=20, limits=LIMITS)
    return work


def test_a_completed_run_that_is_retried_asks_nothing_and_gives_the_same(stack: PrefectStack, work: Workplace) -> None:
    flow_run = begin(stack, work, 30)
    assert stack.wait_for(flow_run, *ENDS) == "Completed"
    values = work.rows(METRIC_SNAPSHOTS)
    stack.set_state(flow_run, "SCHEDULED", "AwaitingRetry")
    wait_until(lambda: stack.get(f"/flow_runs/{flow_run}")["run_count"] == 2, "the second attempt")
    assert stack.wait_for(flow_run, *ENDS) == "Completed"
    after = work.rows(RUNS).row(0, named=True)
    assert work.asked() == 30
    assert (after["calls_made"], after["rows_landed"], after["rows_already_present"]) == (30, 0, 30)
    again = work.rows(METRIC_SNAPSHOTS).filter(snapshot_id=after["snapshot_id"])
    shared = ["model", "slice", "slice_value", "metric", "value", "n"]
    assert again.select(shared).sort(shared).equals(values.select(shared).sort(shared))
    assert are_there_once(work, 30)


def test_a_cancelled_run_stops_asking_and_goes_on_when_it_is_retried(stack: PrefectStack, work: Workplace) -> None:
    def ended_by_runners() -> int:
        logs = [log.read_text(errors="replace") for log in stack.folder.glob("*.log")]
        return sum(log.count("cancellation_manager - Cancelled flow run") for log in logs)

    def cancel(flow_run: str) -> None:
        before = ended_by_runners()
        stack.set_state(flow_run, "CANCELLING", "Cancelling")
        assert stack.wait_for(flow_run, "Cancelled", *ENDS) == "Cancelled"
        # Prefect's runner says so once more when the process has gone, and would cancel a retry that came before.
        wait_until(lambda: ended_by_runners() > before, "the end of the cancelled run's process")

    interrupted(stack, work, cancel)


def test_a_run_whose_worker_was_killed_goes_on_with_another(stack: PrefectStack, work: Workplace) -> None:
    with stack.pool(DEPLOYMENT) as pool:
        worker = stack.worker(pool=pool)

        def kill(flow_run: str) -> None:
            worker.kill_all()
            assert stack.get(f"/flow_runs/{flow_run}")["state_name"] == "Running"  # nobody has told the server
            stack.worker(pool=pool)

        interrupted(stack, work, kill)


def test_a_server_that_is_restarted_in_the_middle_costs_no_call(tmp_path: Path, work: Workplace) -> None:
    work.server.rule(reply='{"action": "BLOCK"}', latency=LATENCY_SECONDS)
    with PrefectStack(tmp_path / "prefect") as stack:
        stack.deploy(DEPLOYMENT.partition("/")[2])
        stack.worker()
        flow_run = begin(stack, work, ITEMS)
        wait_until(lambda: len(work.committed()) > ITEMS // 4, "a quarter of the replies")
        stack.restart_server()
        if stack.wait_for(flow_run, *ENDS) != "Completed":
            stack.set_state(flow_run, "SCHEDULED", "AwaitingRetry")
            assert stack.wait_for(flow_run, "Completed") == "Completed"
    assert work.asked() == ITEMS
    (run,) = work.rows(RUNS).iter_rows(named=True)
    assert (run["state"], run["calls_made"]) == ("completed", ITEMS)
    assert are_there_once(work, ITEMS)


def begin(stack: PrefectStack, work: Workplace, items: int) -> str:
    return stack.run(DEPLOYMENT, work.parameters(work.dataset(items)))


def interrupted(stack: PrefectStack, work: Workplace, interrupt: Callable[[str], None]) -> None:
    """Interrupt a run in its middle, retry it as the UI does, and count what was asked."""
    work.server.rule(reply='{"action": "BLOCK"}', latency=LATENCY_SECONDS)
    flow_run = begin(stack, work, ITEMS)
    wait_until(lambda: len(work.committed()) > ITEMS // 4, "a quarter of the replies")
    interrupt(flow_run)
    wait_until(lambda: work.server.in_flight == 0, "the end of the calls in flight")
    asked, committed = work.asked(), work.committed()
    assert asked < ITEMS
    retries, state = 0, ""
    while state != "Completed" and retries < MOST_RETRIES:
        stack.set_state(flow_run, "SCHEDULED", "AwaitingRetry")
        state, retries = stack.wait_for(flow_run, *ENDS, "Cancelled"), retries + 1
    assert state == "Completed"
    assert not [request for request in work.server.seen[asked:] if request.content in committed]
    # What was on its way when a retry was ended, too, is made again.
    assert 0 <= work.asked() - asked - ITEMS + len(committed) <= CONCURRENCY * (retries - 1)
    assert asked - len(committed) <= CONCURRENCY + CONCURRENCY / LATENCY_SECONDS
    (run,) = work.rows(RUNS).iter_rows(named=True)
    assert (run["state"], run["calls_made"], run["calls_failed"]) == ("completed", ITEMS, 0)
    assert are_there_once(work, ITEMS)
