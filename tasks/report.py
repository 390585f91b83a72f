"""Report: gather one run's snapshot, its rows and what its suite wants shown."""

import json

import polars as pl

from contracts.errors import UsageError
from contracts.tables import RUNS
from reports.report import Report
from storage.lake import Lake
from storage.snapshots import find_snapshot, read_metrics
from suites.registry import suite as find_suite
from tasks.measure import run_results


def build_report(lake: Lake, run_id: str) -> Report:
    """The report of a run's newest snapshot. Raises UsageError where there is no such run, or no snapshot of it."""
    found = lake.frame(RUNS).filter(pl.col("run_id") == run_id).collect()
    if found.is_empty():
        raise UsageError(f"the lake {lake.uri} has no run {run_id}: `evalake runs` lists what there is")
    run = found.row(0, named=True)
    snapshot = find_snapshot(lake, run_id=run_id)
    suite = find_suite(run["suite"])
    results = run_results(lake, suite, run_id, json.loads(snapshot["pinned_versions"])).collect()
    if "judge" not in suite.results.row.model_fields:
        results = results.drop("judge", "judge_hash")
    return Report(
        title=suite.title,
        run=run,
        snapshot=snapshot,
        metrics=read_metrics(lake, snapshot["snapshot_id"]),
        figures=suite.figures,
        target=json.loads(snapshot["options"]).get("target"),
        answers=suite.answers,
        results=results,
    )
