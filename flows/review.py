"""Review: a run that waits for a person. It shows results as a form and ends; resumed, it lands what the form says."""

from collections.abc import Mapping
from typing import Annotated, Any

from prefect import flow, suspend_flow_run
from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import FlowRunInput
from prefect.input import create_flow_run_input
from prefect.runtime import flow_run
from pydantic import Field

from evalake.labels.review import ReviewSheet
from evalake.labels.sheets import land_labels
from evalake.sdk import Labels
from evalake.storage.lake import Lake
from evalake.tasks.runtime.form import LakeUri, open_lake

BATCH = "review-batch"  # the key under which the flow run keeps what it has drawn
MOST_INPUTS = 200  # of a flow run: three a form


@flow(name="review", flow_run_name="review-{run_id}", persist_result=False)
def review(
    run_id: str,
    size: Annotated[int, Field(ge=1, le=50)] = 5,
    patience_hours: Annotated[float, Field(gt=0)] = 72.0,
    lake: LakeUri = None,
) -> int:
    """Suspend until a person has filled in a form about results of a run; returns how many labels the form gave.

    Each time it is resumed it runs again from the top: what it has drawn and been told is kept with the flow run. A
    form with something wrong in it lands nothing, and comes again with what is wrong.

    Args:
        run_id: The run whose results are reviewed, as `evalake runs` lists it.
        size: At most so many results, of those that nobody has labelled; the informative ones are favoured.
        patience_hours: For how long the form waits; after that the run fails, and its retry shows the form again.
    """
    where = open_lake(lake)
    kept = _kept()
    batch = ReviewSheet(**kept[BATCH].decoded_value) if BATCH in kept else _draw(where, run_id, size)
    if not batch.lines:
        return 0
    form = sum(key.endswith("-schema") for key in kept)  # how many were shown: the last one may be filled in
    answers: Mapping[str, Any] = {}
    problems: list[str] = []
    if (given := kept.get(f"suspended-review-{form}-response")) is not None and given.created is not None:
        answers = given.decoded_value
        labels = batch.labels(answers, given.created)
        problems = [f"{refusal.where}: {refusal.reason}" for refusal in labels.refused]
        if labels.rows and not problems:
            return _land(where, run_id, labels)
        problems = problems or ["nothing was filled in: answer at least one question about one line"]
    # A form that timed out, or was filled in badly, is followed by one with a number of its own.
    suspend_flow_run(
        wait_for_input=batch.form(answers, problems),
        key=f"review-{form + 1}",
        timeout=max(1, round(patience_hours * 3600)),
    )
    raise AssertionError("a form that was not shown before suspends the run")


def _kept() -> dict[str, FlowRunInput]:
    """Read what Prefect keeps with this flow run, by key: the batch, its forms and what people answered."""
    with get_client(sync_client=True) as client:
        inputs = client.filter_flow_run_input(flow_run.id, key_prefix="", limit=MOST_INPUTS, exclude_keys=set())
    return {each.key: each for each in inputs}


def _draw(lake: Lake, run_id: str, size: int) -> ReviewSheet:
    batch, texts = ReviewSheet.draw(lake, run_id, size)
    create_flow_run_input(BATCH, {"suite": batch.suite, "lines": batch.lines})
    shown = f"What is reviewed of run {run_id}"
    create_markdown_artifact(texts, key=f"review-{run_id.lower()}", description=shown)
    return batch


def _land(lake: Lake, run_id: str, labels: Labels) -> int:
    landed = land_labels(lake, labels).counts
    counts = {"labels": len(labels.rows), **landed, "lines_left_empty": labels.empty}
    create_table_artifact([counts], key=f"labels-{run_id.lower()}", description=f"Labels on run {run_id}")
    return len(labels.rows)
