"""Snapshot: the newest run of every suite, measured again at the versions its tables have now."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
from prefect import flow
from prefect.artifacts import create_table_artifact

from contracts.configuration import Configuration, read_configuration
from contracts.errors import EvalakeError
from contracts.tables import RUNS
from flows.evaluate import DEFAULT_LAKE, measure_task
from storage.lake import Lake
from suites.registry import suite_names
from tasks.artifacts import headline
from tasks.context import RunContext
from tasks.logs import redact_logs


class SnapshotError(EvalakeError):
    """Some suites could not be measured; those that could have their snapshots."""


@flow(name="snapshot", persist_result=False)
def snapshot(
    lake: str | None = None,
    configuration_file: str | None = None,
) -> dict[str, str]:
    """Measure the newest run of every suite again, without any call; returns suite to snapshot id.

    A suite whose tables, definitions and options are as they were gets the snapshot it had, and nothing lands. Suites
    without a measured run are left out. Raises SnapshotError where suites could not be measured; the others are.

    Args:
        lake: The lake; none means EVALAKE_LAKE or ./lake.
        configuration_file: In place of ./evalake.toml.
    """
    redact_logs()
    where = Lake(lake or os.environ.get("EVALAKE_LAKE") or DEFAULT_LAKE)
    configuration = read_configuration(Path(configuration_file) if configuration_file else None)
    done, failures = {}, []
    for run in _newest_runs(where):
        try:
            done[run["suite"]] = _measure(where, run, configuration)
        except EvalakeError as error:
            failures.append(f"{run['suite']}: {error}")
    if failures:
        raise SnapshotError(f"{len(failures)} suites could not be measured: {'; '.join(failures)}")
    return done


def _newest_runs(lake: Lake) -> list[dict[str, Any]]:
    """The newest run of each suite that has a snapshot: what never had one has no rows, or not all of them yet."""
    measured = lake.frame(RUNS).filter(pl.col("snapshot_id").is_not_null(), pl.col("suite").is_in(suite_names()))
    newest = measured.sort("started_at").group_by("suite").last().sort("suite")
    return newest.collect().to_dicts()


def _measure(lake: Lake, run: Mapping[str, Any], configuration: Configuration) -> str:
    context = RunContext(run["run_id"], run["suite"], lake, configuration)
    # What is missing from the run is missing from its snapshots, whenever they are made.
    warnings = [run["message"]] if run["state"] == "incomplete" and run["message"] else []
    snapshot_id = measure_task.with_options(task_run_name=f"measure {run['suite']}")(context, warnings)
    create_table_artifact(
        headline(context, snapshot_id),
        key=f"snapshot-{run['suite'].replace('_', '-')}",
        description=f"Headline metrics of {run['suite']}, run {run['run_id']}, snapshot {snapshot_id[:12]}",
    )
    return snapshot_id
