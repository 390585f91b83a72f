"""The flow `review`: it shows a form and ends; resumed, it lands what the form says, or asks again and says why."""

from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterFlowRunId
from prefect.client.schemas.objects import State
from prefect.exceptions import ParameterTypeError, Pause
from prefect.flow_engine import run_flow
from prefect.states import Pending

from evalake.contracts.tables import HUMAN_LABELS
from evalake.core.errors import UsageError
from evalake.flows.judges import review
from tests.e2e.processes import wait_until
from tests.integration.flows.artifacts import newest_artifact
from tests.integration.flows.imported import Imported


class Reviewed:
    """A flow run of a deployment, for none other may be suspended; its attempts are made in this process."""

    def __init__(self, imported: Imported, **parameters: Any) -> None:
        self.lake = imported.lake
        self._parameters = {"run_id": imported.guard, "size": 1, "lake": imported.lake.uri, **parameters}
        with get_client(sync_client=True) as client:
            deployed = client.create_deployment(client.create_flow(review), name="on-demand")
            self.id: UUID = client.create_flow_run_from_deployment(deployed, parameters=self._parameters).id

    def attempt(self) -> State[Any]:
        """Run it until it ends or waits."""
        with get_client(sync_client=True) as client:
            client.set_flow_run_state(self.id, Pending(), force=True)  # also of one that has ended, as a retry is
            run = client.read_flow_run(self.id)
        parameters = review.validate_parameters(self._parameters)
        with suppress(Pause):  # which ends the process that runs a flow elsewhere
            run_flow(review, flow_run=run, parameters=parameters, return_type="state")
        return self.state()

    def state(self) -> State[Any]:
        """Its state as Prefect has it."""
        with get_client(sync_client=True) as client:
            state: State[Any] | None = client.read_flow_run(self.id).state
        assert state is not None
        return state

    def form(self, number: int) -> dict[str, Any]:
        """The words and the schema of a form that was shown."""
        kept = self.kept()
        return {name: kept[f"suspended-review-{number}-{name}"] for name in ("schema", "description")}

    def kept(self) -> dict[str, Any]:
        """All that is kept with the flow run, by key."""
        with get_client(sync_client=True) as client:
            found = client.filter_flow_run_input(self.id, key_prefix="", limit=100, exclude_keys=set())
        return {each.key: each.decoded_value for each in found}

    def texts(self) -> str:
        """What is reviewed, as the UI shows it."""
        with get_client(sync_client=True) as client:
            of_run = ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=[self.id]))
            (artifact,) = client.read_artifacts(artifact_filter=of_run)
        return str(artifact.data)

    def answer(self, **answers: Any) -> str:
        """Resume as the UI does; returns what the server says to it."""
        with get_client(sync_client=True) as client:
            return str(client.resume_flow_run(self.id, run_input=answers).status.value)

    def labels(self) -> list[tuple[str, str | None]]:
        rows = self.lake.frame(HUMAN_LABELS).collect().sort("question")
        return rows.select("question", "answer").rows()


def test_what_a_person_says_lands_after_a_form_that_nobody_filled_in(imported: Imported) -> None:
    reviewed = Reviewed(imported)
    assert reviewed.attempt().name == "Suspended"
    first = reviewed.form(1)
    assert list(first["schema"]["properties"]) == ["annotator", "line_1", "line_2"]
    assert "command number" in reviewed.texts()
    assert reviewed.labels() == []

    assert reviewed.answer(annotator="ann", line_1={"malicious": "perhaps"}) == "REJECT"
    assert reviewed.answer(annotator="ann", line_1={"note": "I do not know"}) == "ACCEPT"
    assert reviewed.attempt().name == "Suspended"
    again = reviewed.form(2)
    assert "the form is empty" in again["description"]
    assert again["schema"]["properties"]["line_1"]["default"] == {"note": "I do not know"}
    assert reviewed.labels() == []

    told = {"line_1": {"malicious": "yes"}, "line_2": {"decision_right": "no"}}
    assert reviewed.answer(annotator="ann", **told) == "ACCEPT"
    state = reviewed.attempt()
    assert state.is_completed()
    assert reviewed.labels() == [("decision_right", "no"), ("malicious", "yes")]
    _, (counts,) = newest_artifact(f"labels-{imported.guard}")
    assert (counts["labels"], counts["landed"], counts["lines_left_empty"]) == (2, 2, 0)


def test_a_review_that_nobody_answers_fails_and_its_retry_asks_the_same_again(imported: Imported) -> None:
    reviewed = Reviewed(imported, patience_hours=1 / 3600)
    reviewed.attempt()
    drawn = reviewed.kept()["review-batch"]
    wait_until(lambda: reviewed.state().is_failed(), "the end of the patience")
    assert "never resumed" in (reviewed.state().message or "")
    assert reviewed.answer(annotator="ann", line_1={"malicious": "yes"}) == "ABORT"
    assert reviewed.labels() == []
    reviewed.attempt()
    assert reviewed.form(2)["schema"] == reviewed.form(1)["schema"]
    assert reviewed.kept()["review-batch"] == drawn


def test_a_run_that_there_is_not_and_more_lines_than_a_form_has_room_for_are_refused(
    imported: Imported, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="has no run nothing"):
        review("nothing", lake=imported.lake.uri)
    with pytest.raises(ParameterTypeError, match="size"):
        review(imported.guard, size=51, lake=imported.lake.uri)
    assert imported.lake.frame(HUMAN_LABELS).collect().is_empty()
