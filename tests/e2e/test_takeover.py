"""Two processes of one flow run at a time: the run belongs to the newer one, and nothing is asked by both."""

import signal

import pytest

from evalake.contracts.tables import RUN_ATTEMPTS, RUNS
from evalake.suites.command_guard.contract import RESULTS
from tests.e2e.counts import KEY_VARIABLE, committed_by, key_of
from tests.e2e.processes import EVERY_SECONDS_OF_RUNS, PrefectStack, Process, wait_until
from tests.integration.flows.workplace import LIMITS, Workplace

pytestmark = pytest.mark.e2e

DEPLOYMENT = "evaluate/command-guard-nightly"
CONCURRENCY = 8  # by LIMITS
ITEMS = 200


def process_of(stack: PrefectStack, flow_run: str, name: str) -> Process:
    """Execute a flow run in a process, as a worker does."""
    return stack.start("prefect.engine", PREFECT__FLOW_RUN_ID=flow_run, **key_of(name))


def test_an_older_process_that_stood_still_asks_nothing_that_the_newer_one_was_answered(
    stack: PrefectStack, work: Workplace
) -> None:
    # The newer process waits as long as an answer may take for what the older one has claimed.
    work.configure(batch_size=20, limits=LIMITS.replace("= 600", "= 30"), key_env=KEY_VARIABLE)
    work.slow_down(first=30, seconds=5.0)  # nearly two minutes for all of them, in which the second process comes
    with stack.pool(DEPLOYMENT):
        flow_run = stack.run(DEPLOYMENT, work.parameters(work.dataset(ITEMS)))
    first = process_of(stack, flow_run, "first")
    wait_until(lambda: len(work.committed()) > ITEMS // 10, "the first replies", every=EVERY_SECONDS_OF_RUNS)
    first.popen.send_signal(signal.SIGSTOP)
    stack.set_state(flow_run, "CRASHED", "Crashed")
    stack.set_state(flow_run, "SCHEDULED", "AwaitingRetry")
    work.server.rule(reply='{"action": "BLOCK"}', latency=0.8)
    second = process_of(stack, flow_run, "second")
    wait_until(lambda: len(committed_by(work, "second")) > CONCURRENCY, "replies to the newer process")
    committed, asked = work.committed(), work.asked()
    first.popen.send_signal(signal.SIGCONT)
    assert (first.popen.wait(), second.popen.wait()) == (0, 0), first.log.read_text() + second.log.read_text()
    assert stack.get(f"/flow_runs/{flow_run}")["state_name"] == "Completed"
    assert not [each.content for each in work.server.requests()[asked:] if each.content in committed]
    assert work.asked() <= ITEMS + 2 * CONCURRENCY  # what was on its way, in both
    assert work.rows(RUNS).row(0, named=True)["calls_made"] == ITEMS
    results = work.rows(RESULTS).select(RESULTS.key)
    assert results.height == results.n_unique() == ITEMS
    attempts = work.rows(RUN_ATTEMPTS).sort("attempt").select("state", "message").rows()
    assert attempts == [("failed", "a later attempt has continued the run"), ("completed", None)]
