"""The flows about judges, each with a table in the UI.

Canary: whether judges still answer as before. Calibrate: how well they answer. Review: a form for people about results.
Roadmap: the gaps that results name, grouped by meaning and ranked.
"""

from collections.abc import Mapping
from typing import Annotated, Any

import polars as pl
from prefect import flow, suspend_flow_run, task
from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import FlowRunInput
from prefect.input import create_flow_run_input
from prefect.runtime import flow_run
from pydantic import Field

from evalake.admin.roadmap import make_roadmap, measure_grouping, ranked, roadmap_of, roadmap_suites
from evalake.contracts.contract import Row
from evalake.core.errors import EvalakeError
from evalake.labels.grading import ReviewSheet
from evalake.labels.sheets import land_labels
from evalake.sdk import Labels
from evalake.storage.lake import Lake
from evalake.suites.registry import canary_suites
from evalake.suites.registry import suite as find_suite
from evalake.tasks.calibrate import calibrate as calibrate_judge
from evalake.tasks.canary import Canary, CanaryError, watch
from evalake.tasks.runtime import form
from evalake.tasks.runtime.resources import release_client

BATCH = "review-batch"  # the key of the drawn results among the flow run's inputs
MOST_INPUTS = 200  # of a flow run: three for each form
SHOWN = ("suite", "judge", "version", "moved", "items", "answers", "distance", "noise", "shift", "p_value")
THEME_SHOWN = ("kind", "rank", "theme", "samples", "points_lost", "mean_score")

watch_task = task(name="watch", cache_policy=NO_CACHE, persist_result=False)(watch)
calibrate_task = task(name="calibrate", cache_policy=NO_CACHE, persist_result=False)(calibrate_judge)
make_task = task(name="make roadmap", cache_policy=NO_CACHE, persist_result=False)(make_roadmap)


@flow(name="canary", persist_result=False)
def canary(
    suites: form.Suites = (),
    judges: form.Judges = (),
    day: form.Day = None,
    lake: form.LakeUri = None,
    configuration_file: form.ConfigurationFile = None,
) -> list[Row]:
    """Ask judges about frozen items again, and begin a new version of judges whose answers moved beyond their noise.

    A second run for the same day uses the answers of the first. Returns the rows of judge_canaries. Raises CanaryError,
    after asking the other judges, where a judge does not answer.

    Args:
        suites: The suites whose frozen items are judged; default: all with frozen items.
        judges: The judges; default: each suite's baselines.
        day: The day of the canary; default: the day for which the run was scheduled.
    """
    where, configuration = form.flow_inputs(lake, configuration_file)
    today = (day or flow_run.scheduled_start_time.date()).isoformat()
    judged = []
    judging = {name: judges or find_suite(name).conversation.default_judges for name in suites or canary_suites()}
    failures = [f"{name}: it has no judge of its own, so name one" for name, those in judging.items() if not those]
    asked = [
        Canary(form.context_of(name, [judge], where, configuration), judge, today, str(flow_run.id))
        for name, those in judging.items()
        for judge in those
    ]
    for each in asked:
        try:
            judged.append(watch_task.with_options(task_run_name=f"{each.context.suite_name} {each.judge}")(each))
        except EvalakeError as error:
            failures.append(f"{each.context.suite_name}: {error}")
        finally:
            release_client(each.context)
    shown = [{name: row[name] for name in SHOWN} for row in judged]
    create_table_artifact(shown, key="judge-canary", description=today)
    if failures:
        raise CanaryError(f"{len(failures)} judges did not answer: {'; '.join(failures)}")
    return judged


@flow(name="calibrate", persist_result=False)
def calibrate(
    suite: form.SuiteName,
    judges: list[str],
    lake: form.LakeUri = None,
    configuration_file: form.ConfigurationFile = None,
) -> list[dict[str, Any]]:
    """Measure judges on items of known judgement; the ledger answers known calls.

    Returns one row for each judge and decision. Raises CalibrationError where a judge does not answer.

    Args:
        suite: The suite with the calibration set.
        judges: The judges.
    """
    with form.judge_context(suite, judges, *form.flow_inputs(lake, configuration_file)) as context:
        tables = [calibrate_task.with_options(task_run_name=f"{suite} {judge}")(context, judge) for judge in judges]
    rows = pl.concat(tables).to_dicts()
    create_table_artifact(rows, key="judge-calibration", description=f"{suite}: accuracy of judges by decision")
    return rows


@flow(name="roadmap", persist_result=False)
def roadmap(
    suites: form.Suites = (),
    judge: form.Judge = None,
    lake: form.LakeUri = None,
    configuration_file: form.ConfigurationFile = None,
) -> dict[str, str]:
    """Group the gaps that the results of suites name, and rank them by lost points; returns the roadmap id by suite.

    The ledger answers known calls, and unchanged results give the same roadmap. Suites without named gaps are left out.
    Raises GroupingError where a judge gives no grouping.

    Args:
        suites: The suites; default: all with roadmaps.
        judge: The model that groups by meaning; default: rules, by common words.
    """
    made = {}
    for suite in suites or roadmap_suites():
        with form.judge_context(
            suite, [judge] if judge is not None else [], *form.flow_inputs(lake, configuration_file)
        ) as context:
            rows = make_task.with_options(task_run_name=f"roadmap of {suite}")(context, judge)
        if not rows.is_empty():
            made[suite] = str(rows["roadmap_id"][0])
            shown: list[dict[str, Any]] = ranked(rows).select(THEME_SHOWN).to_dicts()
            title = roadmap_of(suite).title
            create_table_artifact(shown, key=f"roadmap-{suite.replace('_', '-')}", description=title)
    return made


@flow(name="measure-roadmap", persist_result=False)
def measure_roadmap(
    suite: form.SuiteName,
    judge: form.Judge = None,
    lake: form.LakeUri = None,
    configuration_file: form.ConfigurationFile = None,
) -> list[dict[str, Any]]:
    """Measure the grouping of a labelled set; the ledger answers known calls.

    Args:
        suite: The suite with the labelled set.
        judge: The model that groups by meaning; default: rules, by common words.
    """
    with form.judge_context(
        suite, [judge] if judge is not None else [], *form.flow_inputs(lake, configuration_file)
    ) as context:
        return measure_grouping(context, judge)


@flow(name="review", flow_run_name="review-{run_id}", persist_result=False)
def review(
    run_id: str,
    size: Annotated[int, Field(ge=1, le=50)] = 5,
    patience_hours: Annotated[float, Field(gt=0)] = 72.0,
    lake: form.LakeUri = None,
) -> int:
    """Suspend until a person has filled in a form about results of a run; returns the number of labels.

    Each resumption runs from the top, with the results and answers stored in the flow run. A form with an error lands
    nothing, and appears again with the error.

    Args:
        run_id: The run with the results, as `evalake runs` lists it.
        size: The most results; unlabelled and informative ones are preferred.
        patience_hours: How long the form waits; then the run fails, and a retry shows the form again.
    """
    where = form.open_lake(lake)
    kept = _kept()
    batch = ReviewSheet(where, **kept[BATCH].decoded_value) if BATCH in kept else _draw(where, run_id, size)
    if not batch.lines:
        return 0
    shown = sum(key.endswith("-schema") for key in kept)  # the number of shown forms
    answers: Mapping[str, Any] = {}
    problems: list[str] = []
    if (given := kept.get(f"suspended-review-{shown}-response")) is not None and given.created is not None:
        answers = given.decoded_value
        labels = batch.labels(answers, given.created)
        problems = [f"{refusal.where}: {refusal.reason}" for refusal in labels.refused]
        if labels.rows and not problems:
            return _land(where, run_id, labels)
        problems = problems or ["the form is empty: answer at least one question about one line"]
    # The next form, after an error or a timeout, has the next number
    suspend_flow_run(
        wait_for_input=batch.form(answers, problems),
        key=f"review-{shown + 1}",
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
