"""The flow calibrate: measures judges on items of known judgement, one task run each, with a table in the UI."""

from typing import Any

import polars as pl
from prefect import flow, task
from prefect.artifacts import create_table_artifact
from prefect.cache_policies import NO_CACHE

from evalake.tasks.calibrate import calibrate as calibrate_judge
from evalake.tasks.runtime.form import ConfigurationFile, LakeUri, SuiteName, flow_inputs, judge_context

ARTIFACT = "judge-calibration"

calibrate_task = task(name="calibrate", cache_policy=NO_CACHE, persist_result=False)(calibrate_judge)


@flow(name="calibrate", persist_result=False)
def calibrate(
    suite: SuiteName,
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
    with judge_context(suite, judges, *flow_inputs(lake, configuration_file)) as context:
        tables = [calibrate_task.with_options(task_run_name=f"{suite} {judge}")(context, judge) for judge in judges]
    rows = pl.concat(tables).to_dicts()
    create_table_artifact(rows, key=ARTIFACT, description=f"{suite}: accuracy of judges by decision")
    return rows
