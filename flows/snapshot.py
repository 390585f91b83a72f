"""The flows snapshot and rescore: measure again, at the present versions of the tables, or by the present rules."""

from collections.abc import Mapping
from datetime import date
from typing import Any

import polars as pl
from prefect import flow
from prefect.artifacts import create_table_artifact

from evalake.contracts.tables import RUNS
from evalake.core.configuration import Configuration
from evalake.core.errors import EvalakeError
from evalake.flows.evaluate import measure_task
from evalake.storage.lake import Lake, short_message
from evalake.suites.registry import suite_names
from evalake.tasks.rescore import rescore as rescore_run
from evalake.tasks.runtime.artifacts import headline, pages_of
from evalake.tasks.runtime.context import RunContext
from evalake.tasks.runtime.form import ConfigurationFile, Day, LakeUri, day_of_run, flow_inputs
from evalake.tasks.runtime.runs import amended


class SnapshotError(EvalakeError):
    """Some suites could not be measured; the others have their snapshots."""


@flow(name="snapshot", persist_result=False)
def snapshot(
    day: Day = None,
    lake: LakeUri = None,
    configuration_file: ConfigurationFile = None,
) -> dict[str, str]:
    """Measure the newest run of every suite up to a day again, without calls; returns the snapshot id by suite.

    Unchanged tables, definitions and options give the same snapshot. Suites without a measured run are left out. Raises
    SnapshotError, after the other suites, where a suite cannot be measured.

    Args:
        day: The last day of the runs; default: the day for which the flow run was scheduled.
    """
    where, configuration = flow_inputs(lake, configuration_file)
    done, failures = {}, []
    for run in _newest_runs(where, day_of_run(day)):
        try:
            done[run["suite"]] = _measure(where, run, configuration)
        except EvalakeError as error:
            failures.append(f"{run['suite']}: {error}")
        except (pl.exceptions.PolarsError, OSError) as error:  # a missing or unreadable file of a table
            failures.append(f"{run['suite']}: {short_message(error)}")
    if failures:
        raise SnapshotError(f"{len(failures)} suites could not be measured: {'; '.join(failures)}")
    return done


def _newest_runs(lake: Lake, day: date) -> list[dict[str, Any]]:
    """Find each suite's newest run with a snapshot up to the day."""
    is_up_to = pl.col("started_at").dt.date() <= day
    known = pl.col("suite").is_in(suite_names(lake))
    measured = lake.frame(RUNS).filter(pl.col("snapshot_id").is_not_null(), known, is_up_to)
    newest = measured.sort("started_at").group_by("suite").last().sort("suite")
    return newest.collect().to_dicts()


def _measure(lake: Lake, run: Mapping[str, Any], configuration: Configuration) -> str:
    context = RunContext(run["run_id"], run["suite"], lake, configuration)
    # Rows that the run lacks are missing from all its snapshots
    warnings = [run["message"]] if run["state"] == "incomplete" and run["message"] else []
    snapshot_id = measure_task.with_options(task_run_name=f"measure {run['suite']}")(context, warnings)
    amended(lake, run["run_id"], snapshot_id=snapshot_id)
    create_table_artifact(
        headline(context, snapshot_id),
        key=f"snapshot-{run['suite'].replace('_', '-')}",
        description=f"Headline metrics of {run['suite']} with 95 % intervals, run {run['run_id']}, snapshot "
        f"{snapshot_id[:12]}. {pages_of(run['run_id'])}",
    )
    return snapshot_id


@flow(name="rescore", flow_run_name="rescore-{run_id}", persist_result=False)
def rescore(
    run_id: str,
    lake: LakeUri = None,
    configuration_file: ConfigurationFile = None,
) -> str:
    """Derive the rows and the snapshot of a run again by the present rules; returns the snapshot's id.

    Calls no model. Raises UsageError for an unknown run, LakeError where the ledger has none of its replies,
    RescoreError where rows could not be scored.

    Args:
        run_id: The run, as `evalake runs` lists it.
    """
    where, configuration = flow_inputs(lake, configuration_file)
    done = rescore_run(where, run_id, configuration)
    counts = {"items": done.items, "unanswered": done.unanswered, **done.published.counts}
    create_table_artifact([counts], key=f"rescore-{run_id.lower()}", description=f"Snapshot {done.snapshot_id}")
    done.require_whole(run_id)
    return done.snapshot_id
