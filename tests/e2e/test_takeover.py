"""Two processes of one flow run at a time: the run belongs to the newer one, and nothing is asked by both."""

import signal

import pytest

from evalake.contracts.tables import RUN_ATTEMPTS, RUNS
from tests.e2e.counts import are_there_once
from tests.e2e.processes import PrefectStack, Process, wait_until
from tests.integration.flows.workplace import LIMITS, Workplace

pytestmark = pytest.mark.e2e

DEPLOYMENT = "evaluate/command-guard-nightly"
CONCURRENCY = 8  # by LIMITS
ITEMS = 300


@pytest.fixture
def begun(stack: PrefectStack, work: Workplace) -> tuple[str, Process]:
    """A flow run that no worker takes, and a process of it that asks."""
    work.configure(batch_size=20, limits=LIMITS)
    # Thirty seconds for all of them, in which the second process comes.
    work.server.rule(reply='{"action": "BLOCK"}', latency=0.8)
    with stack.pool(DEPLOYMENT):
        flow_run = stack.run(DEPLOYMENT, work.parameters(work.dataset(ITEMS)))
    first = process_of(stack, flow_run)
    wait_until(lambda: len(work.committed()) > ITEMS // 10, "the first replies")
    return flow_run, first


def process_of(stack: PrefectStack, flow_run: str) -> Process:
    """Execute a flow run in a process, as a worker does."""
    return stack.start("prefect.engine", PREFECT__FLOW_RUN_ID=flow_run)


def test_of_two_processes_that_live_the_older_one_ends_and_the_newer_one_goes_on(
    stack: PrefectStack, work: Workplace, begun: tuple[str, Process]
) -> None:
    flow_run, first = begun
    second = process_of(stack, flow_run)
    assert (first.popen.wait(120), second.popen.wait(120)) == (0, 0), first.log.read_text() + second.log.read_text()
    assert stack.get(f"/flow_runs/{flow_run}")["state_name"] == "Completed"
    asked = [request.content for request in work.server.requests()]
    assert len(asked) == len(set(asked)) == ITEMS
    assert are_there_once(work, ITEMS)
    assert "another process has continued the run" in first.log.read_text()
    assert told(work)[-1] == ("completed", None)


def test_an_older_process_that_stood_still_asks_nothing_that_the_newer_one_was_answered(
    stack: PrefectStack, work: Workplace, begun: tuple[str, Process]
) -> None:
    flow_run, first = begun
    first.popen.send_signal(signal.SIGSTOP)
    stack.set_state(flow_run, "CRASHED", "Crashed")
    stack.set_state(flow_run, "SCHEDULED", "AwaitingRetry")
    second = process_of(stack, flow_run)
    asked_before = work.asked()
    wait_until(lambda: work.asked() > asked_before + 2 * CONCURRENCY, "calls of the newer process")
    committed, asked = work.committed(), work.asked()
    first.popen.send_signal(signal.SIGCONT)
    assert (first.popen.wait(120), second.popen.wait(120)) == (0, 0), first.log.read_text() + second.log.read_text()
    assert stack.get(f"/flow_runs/{flow_run}")["state_name"] == "Completed"
    assert not [each.content for each in work.server.requests()[asked:] if each.content in committed]
    assert work.asked() <= ITEMS + 2 * CONCURRENCY  # what was on its way, in both
    assert work.rows(RUNS).row(0, named=True)["calls_made"] == ITEMS
    assert told(work) == [("failed", "its process has died"), ("completed", None)]


def told(work: Workplace) -> list[tuple[str, str | None]]:
    """How the attempts ended, in their order."""
    return work.rows(RUN_ATTEMPTS).sort("attempt").select("state", "message").rows()
