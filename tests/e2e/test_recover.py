"""Runs that end otherwise than planned, and are run again: what the ledger holds is never asked for twice."""

from collections.abc import Callable

import pytest

from evalake.contracts.tables import CALLS, RUNS
from evalake.suites.command_guard.contract import RESULTS
from tests.e2e.counts import are_there_once
from tests.e2e.processes import ENDS, EVERY_SECONDS_OF_RUNS, PrefectStack, wait_until
from tests.integration.flows.workplace import LIMITS, Workplace

pytestmark = pytest.mark.e2e

DEPLOYMENT = "evaluate/command-guard-nightly"
CONCURRENCY = 8  # by LIMITS
ITEMS = 240
FIRST = 40  # calls that are answered before a run is interrupted; the others are held, or take two minutes
SLOW_SECONDS, HELD_SECONDS = 5.0, 3600.0
MOST_RETRIES = 5  # for a minute, Prefect's runner can end a retry of what was cancelled (docs/operations.md)


@pytest.fixture
def work(work: Workplace) -> Workplace:
    work.configure(batch_size=20, limits=LIMITS)
    return work


def test_a_cancelled_run_stops_asking_and_goes_on_when_it_is_retried(stack: PrefectStack, work: Workplace) -> None:
    def logged(words: str) -> int:
        return sum(log.read_text(errors="replace").count(words) for log in stack.folder.glob("*.log"))

    def ended_by_runners() -> int:
        return logged("cancellation_manager - Cancelled flow run")

    def cancel(flow_run: str) -> None:
        before = ended_by_runners()
        stack.set_state(flow_run, "CANCELLING", "Cancelling")
        assert stack.wait_for(flow_run, *ENDS) == "Cancelled"
        # Prefect's runner says so once more when the process has gone, and would cancel a retry that came before.
        wait_until(lambda: ended_by_runners() > before, "the end of the cancelled run's process")
        assert "TerminationSignal" not in (stack.get(f"/flow_runs/{flow_run}")["state"]["message"] or "")
        assert not logged("CancelledRun")  # nor a traceback
        assert work.rows(RUNS)["message"].item() == "cancelled; a rerun asks only for what is missing"
        assert 0 < work.rows(RESULTS).height <= work.rows(CALLS).height

    interrupted(stack, work, cancel, SLOW_SECONDS)  # for calls in flight end first


def test_a_run_whose_worker_was_killed_goes_on_with_another(stack: PrefectStack, work: Workplace) -> None:
    with stack.pool(DEPLOYMENT) as pool:
        worker = stack.worker(pool=pool)

        def kill(flow_run: str) -> None:
            worker.kill_all()
            assert stack.get(f"/flow_runs/{flow_run}")["state_name"] == "Running"  # nobody has told the server
            stack.worker(pool=pool)

        interrupted(stack, work, kill, HELD_SECONDS)


def test_a_server_that_is_restarted_in_the_middle_costs_no_call(stack: PrefectStack, work: Workplace) -> None:
    flow_run = begin(stack, work, HELD_SECONDS)
    stack.restart_server()
    work.go_faster()
    if stack.wait_for(flow_run, *ENDS) != "Completed":
        stack.set_state(flow_run, "SCHEDULED", "AwaitingRetry")
        assert stack.wait_for(flow_run, "Completed") == "Completed"
    assert work.asked() == ITEMS
    (run,) = work.rows(RUNS).iter_rows(named=True)
    assert (run["state"], run["calls_made"]) == ("completed", ITEMS)
    assert are_there_once(work, ITEMS)


def begin(stack: PrefectStack, work: Workplace, seconds: float) -> str:
    """Begin a run, of which some replies are kept, and the others take so long."""
    work.slow_down(FIRST, seconds)
    flow_run = stack.run(DEPLOYMENT, work.parameters(work.dataset(ITEMS)))
    wait_until(lambda: len(work.committed()) > FIRST // 2, "the first replies", every=EVERY_SECONDS_OF_RUNS)
    return flow_run


def interrupted(stack: PrefectStack, work: Workplace, interrupt: Callable[[str], None], seconds: float) -> None:
    """Interrupt a run in its middle, retry it as the UI does, and count what was asked."""
    flow_run = begin(stack, work, seconds)
    interrupt(flow_run)
    wait_until(lambda: work.server.in_flight == 0, "the end of the calls in flight")
    work.go_faster()
    asked, committed = work.asked(), work.committed()
    assert asked < ITEMS
    retries, state = 0, ""
    while state != "Completed" and retries < MOST_RETRIES:
        stack.set_state(flow_run, "SCHEDULED", "AwaitingRetry")
        state, retries = stack.wait_for(flow_run, *ENDS), retries + 1
    assert state == "Completed"
    assert not [request for request in work.server.seen[asked:] if request.content in committed]
    # What was on its way when a retry was ended, too, is made again.
    assert 0 <= work.asked() - asked - ITEMS + len(committed) <= CONCURRENCY * (retries - 1)
    assert asked - len(committed) <= 4 * CONCURRENCY  # in flight, and not kept yet
    (run,) = work.rows(RUNS).iter_rows(named=True)
    assert (run["state"], run["calls_made"], run["calls_failed"]) == ("completed", ITEMS, 0)
    assert are_there_once(work, ITEMS)
