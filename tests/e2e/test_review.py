"""A review by a person, with a real server and worker: the run ends while it waits, and lands the answers."""

import json
from pathlib import Path
from typing import Any

import psutil
import pytest

from evalake.admin.import_results import import_recorded
from evalake.contracts.tables import HUMAN_LABELS
from evalake.storage.lake import Lake
from evalake.suites.registry import suite
from tests.e2e.processes import PrefectStack, wait_until
from tests.unit.suites.solidity_audit.support import finding, judgement, line, target

pytestmark = pytest.mark.e2e


class Review:
    """A review of a run with four audits, of a finding each."""

    def __init__(self, stack: PrefectStack, folder: Path) -> None:
        self._stack = stack
        self.lake = Lake(str(folder / "lake"))
        file = folder / "audits.jsonl"
        audits = [line(n, judged=judgement([finding()], target(share=0.8)), judge="alice") for n in range(4)]
        file.write_text("".join(json.dumps(audit) + "\n" for audit in audits))
        run = import_recorded(self.lake, suite("solidity_audit"), [file])
        self.flow_run = stack.run("review/review-on-demand", {"run_id": run, "size": 2, "lake": self.lake.uri})

    def state(self, *names: str) -> str:
        """Wait for one of these states."""
        return self._stack.wait_for(self.flow_run, *names, "Failed", "Crashed", "Completed")

    def form(self, number: int) -> dict[str, Any]:
        """The schema of a form, as the UI reads it; waits until it is there, with its description, which comes last."""
        wait_until(lambda: f"suspended-review-{number}-description" in self.inputs(), f"form {number}")
        schema: dict[str, Any] = json.loads(self.inputs()[f"suspended-review-{number}-schema"])
        return schema

    def inputs(self) -> dict[str, str]:
        """All that is kept with the flow run, by key."""
        body = {"prefix": "", "limit": 200}
        found = self._stack.post(f"/flow_runs/{self.flow_run}/input/filter", body)
        return {each["key"]: each["value"] for each in found}

    def resume(self, **answers: Any) -> dict[str, Any]:
        """Resume as the UI does; returns what the server says to it."""
        said: dict[str, Any] = self._stack.post(f"/flow_runs/{self.flow_run}/resume", {"run_input": answers})
        return said

    def process(self) -> int:
        """The process that the worker started for the flow run's last attempt."""
        return int(self._stack.get(f"/flow_runs/{self.flow_run}")["infrastructure_pid"].rpartition(":")[2])

    def labels(self) -> list[dict[str, Any]]:
        return self.lake.frame(HUMAN_LABELS).collect().sort("finding_id", "question", nulls_last=False).to_dicts()


def test_a_review_ends_waits_and_lands_what_a_person_says(stack: PrefectStack, tmp_path: Path) -> None:
    review = Review(stack, tmp_path)
    assert review.state("Suspended") == "Suspended"
    form = review.form(1)
    assert list(form["properties"]) == [
        "annotator",
        *(f"line_{n}" for n in range(1, 7)),
    ]  # two verdicts; targets and findings
    assert form["required"] == ["annotator"]
    wait_until(lambda: not psutil.pid_exists(review.process()), "the end of the process that showed the form")

    # What the form does not allow is refused with the reason, and the form stays.
    refused = review.resume(annotator="ann", line_1={"verdict": "perhaps"})
    assert refused["status"] == "REJECT"
    assert "line_1" in refused["details"]["reason"]
    assert review.resume(annotator=" ")["status"] == "REJECT"
    assert review.state("Suspended") == "Suspended"
    assert review.labels() == []

    finding_line = {"classification": "BONUS_VALID", "note": "real, but another flaw"}
    lines = {
        "line_1": {"verdict": "vulnerable"},
        "line_3": {"target_found": "no", "rcir": 0.25},
        "line_4": finding_line,
    }
    assert review.resume(annotator="ann", **lines)["status"] == "ACCEPT"
    assert review.state() == "Completed"
    *audit, found = review.labels()
    assert [(row["annotator"], row["question"], row["answer"], row["score"]) for row in audit] == [
        ("ann", "root_cause_score", None, 0.25),
        ("ann", "target_found", "no", None),
        ("ann", "verdict", "vulnerable", None),
    ]
    assert (found["finding_id"], found["answer"], found["note"]) == (1, *finding_line.values())
    assert all(0 < row["inclusion_probability"] <= 1 for row in audit)
