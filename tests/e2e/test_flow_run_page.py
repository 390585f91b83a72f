"""What a person sees of a run in the Prefect UI, from its name to its artifacts, and what a retry there asks."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from evalake.contracts.tables import RUN_ATTEMPTS, RUNS
from tests.e2e.counts import are_there_once
from tests.e2e.processes import DATABASE_VARIABLE, PrefectStack, wait_until
from tests.integration.flows.workplace import MODEL, OTHER, Workplace

DEPLOYMENT = "evaluate/command-guard-nightly"

pytestmark = pytest.mark.e2e


class Page:
    """The page of a flow run that has ended."""

    def __init__(self, stack: PrefectStack, flow_run: str) -> None:
        self.state = stack.wait_for(flow_run, "Failed", "Completed", "Crashed")
        self._of = {"flow_runs": {"id": {"any_": [flow_run]}}}
        self._stack, self._id = stack, flow_run
        self.run: Mapping[str, Any] = stack.get(f"/flow_runs/{flow_run}")
        # Task runs and logs reach the server in the background.
        wait_until(
            lambda: any(line.startswith(f"Finished in state {self.state}") for line in self.log(True)), "its log"
        )

    def log(self, of_flow: bool = False) -> list[str]:
        """The lines of its log; of the flow's own logger only, where wanted."""
        query = {"logs": {"flow_run_id": {"any_": [self._id]}}, "sort": "TIMESTAMP_ASC"}
        lines = self._stack.post("/logs/filter", query)
        return [each["message"] for each in lines if not of_flow or each["name"] == "prefect.flow_runs"]

    def tasks(self) -> dict[str, str]:
        """The message of each task run's state, by name."""
        return {each["name"]: each["state"]["message"] or "" for each in self.task_runs()}

    def task_runs(self, *tags: str) -> list[Mapping[str, Any]]:
        """Its task runs; those that have all the tags, where some are given."""
        tagged = {"task_runs": {"tags": {"all_": list(tags)}}} if tags else {}
        found: list[Mapping[str, Any]] = self._stack.post("/task_runs/filter", self._of | tagged)
        return found

    def artifacts(self) -> dict[str, str]:
        return {each["key"]: str(each["data"]) for each in self._stack.post("/artifacts/filter", self._of)}


def test_a_completed_run_is_told_in_words(stack: PrefectStack, work: Workplace) -> None:
    """That a rerun asks nothing: tests/integration/flows/test_evaluate.py."""
    parameters = work.parameters(work.dataset(12), models=[MODEL, OTHER])
    page = Page(stack, stack.run(DEPLOYMENT, parameters))
    run_id = work.rows(RUNS)["run_id"].item()
    day = str(page.run["expected_start_time"])[:10]
    assert page.state == "Completed"
    assert page.run["name"] == f"command_guard: {MODEL}, {OTHER}, {day}"
    assert {"command_guard", MODEL, OTHER, run_id} <= set(page.run["tags"])
    log = "\n".join(page.log())
    assert "commands: 12 samples (file-read 12)" in log
    assert f"24 items, {MODEL}, {OTHER}" in log
    assert f"run {run_id} of command_guard is completed: 24 calls made, 0 from the ledger, 0 failed" in log
    assert "cost 0.00072 USD" in log  # 24 calls of 20 tokens in and 5 out, at 1 and 2 dollars a million
    steps = {f"{step} command_guard" for step in ("plan", "extract", "publish", "measure")}
    assert steps | {f"{MODEL} #1"} <= page.tasks().keys()
    wait_until(lambda: len(page.task_runs("command_guard")) == len(page.task_runs()), "the tags of every task run")
    assert {each["name"].split(" #")[0] for each in page.task_runs(MODEL)} == {MODEL}
    batches = [json.loads(data) for key, data in page.artifacts().items() if key.startswith("batch-")]
    assert sum(row["answered"] for rows in batches for row in rows if row["model"] == MODEL) == 12
    report = Path(stack.environment["EVALAKE_REPORTS"]) / run_id / "report.html"
    assert report.is_file()
    assert f"`{report}`" in page.artifacts()[f"run-{run_id}"]
    assert work.asked() == 24
    # Where PostgreSQL is installed, its server keeps all of this, and no error is logged
    is_postgres = DATABASE_VARIABLE in stack.environment
    assert is_postgres != (Path(stack.environment["PREFECT_HOME"]) / "prefect.db").exists()


def test_a_custom_run_that_fails_is_told_once_and_its_retry_calls_only_what_is_missing(
    stack: PrefectStack, work: Workplace
) -> None:
    """The form sends the message that was typed, or an empty one, as Prefect 3.8 does."""
    # Two attempts a call, so the first run gives up on ten of sixty items, and the second finds them answered.
    work.server.rule(contains="# 0000", faults=({"kind": "server_error", "times": 2},), reply='{"action": "BLOCK"}')
    deployment = stack.get(f"/deployments/name/{DEPLOYMENT}")
    form = {"name": "before the release", "state": {"type": "SCHEDULED", "message": "", "state_details": {}}}
    body = {**form, "parameters": dict(work.parameters(work.dataset(60))), "job_variables": {}}
    flow_run = str(stack.post(f"/deployments/{deployment['id']}/create_flow_run", body)["id"])
    page = Page(stack, flow_run)
    assert (page.state, page.run["name"]) == ("Failed", "before the release")
    told = f"10 items have no answer: {MODEL} at {work.server.api_base}: 10 server"
    assert told in page.run["state"]["message"]
    log = page.log()
    assert not any("Traceback" in line for line in log)
    assert sum(told in line and line.startswith("Finished in state") for line in log) == 1
    assert not any("Encountered exception" in line for line in log)
    assert sum(line.startswith(f"{MODEL}, attempt 1 of 2: server") for line in log) == 10
    (failed,) = [message for message in page.tasks().values() if "given up on" in message]
    assert f"10 of 10 calls were given up on: {MODEL} at {work.server.api_base}: 10 server" in failed
    first = work.rows(RUNS).row(0, named=True)
    assert (first["state"], first["calls_made"], first["calls_failed"]) == ("incomplete", 50, 10)

    asked = work.asked()
    stack.set_state(flow_run, "SCHEDULED", "AwaitingRetry", message="Retry from the UI")
    assert stack.wait_for(flow_run, "Completed", "Crashed") == "Completed"
    (again,) = work.rows(RUNS).iter_rows(named=True)
    assert again["started_at"] == first["started_at"]
    attempts = work.rows(RUN_ATTEMPTS).sort("attempt").select("attempt", "state", "started_by", "calls_made").rows()
    assert attempts == [(1, "incomplete", "Prefect UI", 50), (2, "completed", "Prefect UI", 10)]
    assert (again["run_id"], again["flow_run_id"]) == (first["run_id"], flow_run)
    assert (again["state"], again["calls_made"], again["calls_from_ledger"]) == ("completed", 60, 0)
    assert work.asked() == asked + 10
    assert are_there_once(work, 60)
