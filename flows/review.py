"""The flow review: shows results as a form, suspends, and when resumed lands the labels of the form."""

from collections.abc import Mapping
from typing import Annotated, Any

from prefect import flow, suspend_flow_run
from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import FlowRunInput
from prefect.input import create_flow_run_input
from prefect.runtime import flow_run
from pydantic import Field

from evalake.labels.grading import ReviewSheet
from evalake.labels.sheets import land_labels
from evalake.sdk import Labels
from evalake.storage.lake import Lake
from evalake.tasks.runtime.form import LakeUri, open_lake

BATCH = "review-batch"  # the key of the drawn results among the flow run's inputs
MOST_INPUTS = 200  # of a flow run: three for each form


@flow(name="review", flow_run_name="review-{run_id}", persist_result=False)
def review(
    run_id: str,
    size: Annotated[int, Field(ge=1, le=50)] = 5,
    patience_hours: Annotated[float, Field(gt=0)] = 72.0,
    lake: LakeUri = None,
) -> int:
    """Suspend until a person has filled in a form about results of a run; returns the number of labels.

    Each resumption runs from the top, with the results and answers stored in the flow run. A form with an error lands
    nothing, and appears again with the error.

    Args:
        run_id: The run with the results, as `evalake runs` lists it.
        size: The most results; unlabelled and informative ones are preferred.
        patience_hours: How long the form waits; then the run fails, and a retry shows the form again.
    """
    where = open_lake(lake)
    kept = _kept()
    batch = ReviewSheet(where, **kept[BATCH].decoded_value) if BATCH in kept else _draw(where, run_id, size)
    if not batch.lines:
        return 0
    form = sum(key.endswith("-schema") for key in kept)  # the number of shown forms
    answers: Mapping[str, Any] = {}
    problems: list[str] = []
    if (given := kept.get(f"suspended-review-{form}-response")) is not None and given.created is not None:
        answers = given.decoded_value
        labels = batch.labels(answers, given.created)
        problems = [f"{refusal.where}: {refusal.reason}" for refusal in labels.refused]
        if labels.rows and not problems:
            return _land(where, run_id, labels)
        problems = problems or ["the form is empty: answer at least one question about one line"]
    # The next form, after an error or a timeout, has the next number
    suspend_flow_run(
        wait_for_input=batch.form(answers, problems),
        key=f"review-{form + 1}",
        timeout=max(1, round(patience_hours * 3600)),
    )
    raise AssertionError("a new form suspends the run")


def _kept() -> dict[str, FlowRunInput]:
    """Read the inputs of this flow run by key: the drawn results, the forms and their answers."""
    with get_client(sync_client=True) as client:
        inputs = client.filter_flow_run_input(flow_run.id, key_prefix="", limit=MOST_INPUTS, exclude_keys=set())
    return {each.key: each for each in inputs}


def _draw(lake: Lake, run_id: str, size: int) -> ReviewSheet:
    batch, texts = ReviewSheet.draw(lake, run_id, size)
    create_flow_run_input(BATCH, {"suite": batch.suite, "lines": batch.lines})
    create_markdown_artifact(texts, key=f"review-{run_id.lower()}", description=f"Results of run {run_id} for review")
    return batch


def _land(lake: Lake, run_id: str, labels: Labels) -> int:
    landed = land_labels(lake, labels).counts
    counts = {"labels": len(labels.rows), **landed, "lines_left_empty": labels.empty}
    create_table_artifact([counts], key=f"labels-{run_id.lower()}", description=f"Labels on run {run_id}")
    return len(labels.rows)
