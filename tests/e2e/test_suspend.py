"""Suspend and Pause of the Prefect UI: calls end before all are asked, and the rest is asked later, each once.

tests/e2e/test_dask.py suspends and resumes a deployment's run.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import psutil
import pytest

from evalake.contracts.tables import CALLS, RUNS
from evalake.suites.command_guard.contract import RESULTS
from tests.e2e.processes import PrefectStack, wait_until
from tests.integration.flows.workplace import MODEL, Workplace

DEPLOYMENT = "evaluate/command-guard-nightly"
ITEMS = 240
FIRST, SLOW_SECONDS = 20, 5.0  # the calls after the first take two minutes, in which a busy machine suspends

pytestmark = pytest.mark.e2e


class SlowRun:
    """A run of slow calls, the first of which are under way."""

    def __init__(self, stack: PrefectStack, work: Workplace, flow_run: str) -> None:
        self._stack, self._work, self.flow_run = stack, work, flow_run
        wait_until(lambda: work.asked() >= FIRST, "the first calls")

    @classmethod
    def of_deployment(cls, stack: PrefectStack, work: Workplace) -> "SlowRun":
        work.slow_down(FIRST, SLOW_SECONDS)
        return cls(stack, work, stack.run(DEPLOYMENT, work.parameters(work.dataset(ITEMS))))

    def set_state(self, kind: str, name: str, **details: Any) -> None:
        """Set its state as the UI does."""
        body = {"state": {"type": kind, "name": name, "state_details": details}, "force": True}
        self._stack.post(f"/flow_runs/{self.flow_run}/set_state", body)

    def suspend(self) -> None:
        """Press Suspend, with a time-out of an hour."""
        timeout = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
        self.set_state("PAUSED", "Suspended", pause_reschedule=True, pause_timeout=timeout)

    def has_calmed(self) -> None:
        """Wait until its process has ended; some of the calls were never begun."""
        process = int(self.read()["infrastructure_pid"].rpartition(":")[2])
        wait_until(lambda: not psutil.pid_exists(process), "the end of the run's process")
        wait_until(lambda: self._work.server.in_flight == 0, "the end of the calls in flight")
        assert self._work.asked() < ITEMS
        assert self._work.rows(RESULTS).height == self._work.rows(CALLS).height

    def resume(self) -> None:
        """Press Resume."""
        self._stack.post(f"/flow_runs/{self.flow_run}/resume", {})

    def read(self) -> Mapping[str, Any]:
        """The flow run as Prefect has it."""
        flow_run: Mapping[str, Any] = self._stack.get(f"/flow_runs/{self.flow_run}")
        return flow_run

    def row(self) -> Mapping[str, Any]:
        return self._work.rows(RUNS).row(0, named=True)

    def completes(self) -> None:
        """Wait for its end: every item was asked once, over all attempts."""
        assert self._stack.wait_for(self.flow_run, "Completed", "Failed", "Crashed") == "Completed"
        assert self._work.asked() == self._work.rows(CALLS).height == ITEMS
        assert (self.row()["state"], self.row()["calls_made"]) == ("completed", ITEMS)


def test_a_paused_run_is_suspended_and_fails_after_its_time(stack: PrefectStack, work: Workplace) -> None:
    run = SlowRun.of_deployment(stack, work)
    run.set_state("PAUSED", "Paused", pause_timeout=(datetime.now(UTC) + timedelta(seconds=15)).isoformat())
    run.has_calmed()
    assert stack.wait_for(run.flow_run, "Failed") == "Failed"  # nobody resumed it


def test_a_suspended_run_without_a_deployment_ends_with_the_line_that_goes_on(
    stack: PrefectStack, work: Workplace
) -> None:
    work.slow_down(FIRST, SLOW_SECONDS)
    dataset = work.dataset(ITEMS)
    order = ["run", "command_guard", "--models", MODEL, "--dataset", dataset, "--config", str(work.configuration)]
    process = stack.open("evalake.cli", *order, "--lake", work.lake.uri)
    wait_until(lambda: work.asked() >= FIRST, "the first calls")
    run = SlowRun(stack, work, str(work.rows(RUNS)["flow_run_id"].item()))
    run.suspend()
    said = process.communicate()[1]
    assert process.returncode == 1
    assert work.asked() < ITEMS
    line = (
        f"suspended; without a deployment, this command continues it: evalake {' '.join(order)} --lake {work.lake.uri}"
    )
    assert line in said
    assert "Traceback" not in said
