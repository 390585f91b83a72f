"""Suspend, Pause and Cancel of the Prefect UI: calls end within seconds, and the rest is asked later, each once."""

import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import psutil
import pytest

from evalake.contracts.tables import CALLS, RUNS
from tests.e2e.processes import PrefectStack, wait_until
from tests.integration.flows.workplace import MODEL, Workplace

DEPLOYMENT = "evaluate/command-guard-nightly"
ITEMS = 240
CALMED_AFTER_SECONDS = 10.0

pytestmark = pytest.mark.e2e


class SlowRun:
    """A run of slow calls, the first of which are under way."""

    def __init__(self, stack: PrefectStack, work: Workplace, flow_run: str, items: int = ITEMS) -> None:
        self._stack, self._work, self.flow_run, self._items = stack, work, flow_run, items
        wait_until(lambda: work.asked() >= 20, "the first calls")

    @classmethod
    def of_deployment(cls, stack: PrefectStack, work: Workplace, items: int = ITEMS, **parameters: Any) -> "SlowRun":
        work.server.rule(reply='{"action": "BLOCK"}', latency=1.0)
        flow_run = stack.run(DEPLOYMENT, work.parameters(work.dataset(items), **parameters))
        return cls(stack, work, flow_run, items)

    def set_state(self, kind: str, name: str, **details: Any) -> None:
        """Set its state as the UI does."""
        self._ordered = time.monotonic()
        body = {"state": {"type": kind, "name": name, "state_details": details}, "force": True}
        self._stack.post(f"/flow_runs/{self.flow_run}/set_state", body)

    def suspend(self, **details: Any) -> None:
        """Press Suspend, with a time-out of five minutes."""
        timeout = (datetime.now(UTC) + timedelta(minutes=5)).isoformat()
        self.set_state("PAUSED", "Suspended", **{"pause_reschedule": True, "pause_timeout": timeout, **details})

    def has_calmed(self) -> None:
        """Wait until its process has ended; no call began later than it may."""
        process = int(self.read()["infrastructure_pid"].rpartition(":")[2])
        wait_until(lambda: not psutil.pid_exists(process), "the end of the run's process")
        wait_until(lambda: self._work.server.in_flight == 0, "the end of the calls in flight")
        seen = self._work.server.requests()
        assert len(seen) < self._items
        assert max(request.started for request in seen) < self._ordered + CALMED_AFTER_SECONDS

    def resume(self) -> None:
        """Press Resume."""
        self._stack.post(f"/flow_runs/{self.flow_run}/resume", {})

    def go_faster(self) -> None:
        self._work.server.rule(reply='{"action": "BLOCK"}')

    def read(self) -> Mapping[str, Any]:
        """The flow run as Prefect has it."""
        flow_run: Mapping[str, Any] = self._stack.get(f"/flow_runs/{self.flow_run}")
        return flow_run

    def row(self) -> Mapping[str, Any]:
        return self._work.rows(RUNS).row(0, named=True)

    def completes(self) -> None:
        """Wait for its end: every item was asked once, over all attempts."""
        assert self._stack.wait_for(self.flow_run, "Completed", "Failed", "Crashed") == "Completed"
        assert self._work.asked() == self._work.rows(CALLS).height == self._items
        assert (self.row()["state"], self.row()["calls_made"]) == ("completed", self._items)


def test_a_suspended_run_asks_nothing_more_and_goes_on_by_resume(stack: PrefectStack, work: Workplace) -> None:
    run = SlowRun.of_deployment(stack, work)
    run.suspend()
    run.has_calmed()
    assert run.read()["state_name"] == "Suspended"
    assert run.row()["message"].startswith("suspended; when resumed, it asks only")
    run.go_faster()
    run.resume()
    run.completes()


def test_a_paused_run_is_suspended_and_after_its_time_goes_on_by_retry(stack: PrefectStack, work: Workplace) -> None:
    run = SlowRun.of_deployment(stack, work)
    run.set_state("PAUSED", "Paused", pause_timeout=(datetime.now(UTC) + timedelta(seconds=15)).isoformat())
    run.has_calmed()
    assert stack.wait_for(run.flow_run, "Failed") == "Failed"  # nobody resumed it
    run.go_faster()
    stack.set_state(run.flow_run, "SCHEDULED", "AwaitingRetry")
    run.completes()


def test_a_cancelled_run_says_cancelled(stack: PrefectStack, work: Workplace) -> None:
    run = SlowRun.of_deployment(stack, work)
    run.set_state("CANCELLING", "Cancelling")
    run.has_calmed()
    assert stack.wait_for(run.flow_run, "Cancelled") == "Cancelled"
    assert "TerminationSignal" not in (run.read()["state"]["message"] or "")
    assert run.row()["message"] == "cancelled; a rerun asks only for what is missing"


def test_a_suspended_run_without_a_deployment_ends_with_the_line_that_goes_on(
    stack: PrefectStack, work: Workplace
) -> None:
    work.server.rule(reply='{"action": "BLOCK"}', latency=1.0)
    dataset = work.dataset(ITEMS)
    order = ["run", "command_guard", "--models", MODEL, "--dataset", dataset, "--config", str(work.configuration)]
    process = stack.open("evalake.cli", *order, "--lake", work.lake.uri)
    wait_until(lambda: work.asked() >= 20, "the first calls")
    run = SlowRun(stack, work, str(work.rows(RUNS)["flow_run_id"].item()))
    run.suspend()
    said = process.communicate()[1]
    assert process.returncode == 1
    seen = work.server.requests()
    assert max(request.started for request in seen) < run._ordered + CALMED_AFTER_SECONDS
    line = (
        f"suspended; without a deployment, this command continues it: evalake {' '.join(order)} --lake {work.lake.uri}"
    )
    assert line in said
    assert "Traceback" not in said
