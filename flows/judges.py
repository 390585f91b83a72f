"""The flows canary and calibrate: whether judges still answer as before, and how well, each with a table in the UI."""

from typing import Any

import polars as pl
from prefect import flow, task
from prefect.artifacts import create_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.runtime import flow_run

from evalake.contracts.contract import Row
from evalake.core.errors import EvalakeError
from evalake.suites.registry import canary_suites
from evalake.suites.registry import suite as find_suite
from evalake.tasks.calibrate import calibrate as calibrate_judge
from evalake.tasks.canary import Canary, CanaryError, watch
from evalake.tasks.runtime import form
from evalake.tasks.runtime.form import ConfigurationFile, LakeUri
from evalake.tasks.runtime.resources import release_client

SHOWN = ("suite", "judge", "version", "moved", "items", "answers", "distance", "noise", "shift", "p_value")

watch_task = task(name="watch", cache_policy=NO_CACHE, persist_result=False)(watch)
calibrate_task = task(name="calibrate", cache_policy=NO_CACHE, persist_result=False)(calibrate_judge)


@flow(name="canary", persist_result=False)
def canary(
    suites: form.Suites = (),
    judges: form.Judges = (),
    day: form.Day = None,
    lake: LakeUri = None,
    configuration_file: ConfigurationFile = None,
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
    lake: LakeUri = None,
    configuration_file: ConfigurationFile = None,
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
