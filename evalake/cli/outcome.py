"""Prints the plan of a run, and the outcome of a run or an import: counts for machines, tables for people."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import typer

from evalake.cli import output as show
from evalake.cli.configuration import command, trusting
from evalake.cli.terminal import say, say_error
from evalake.contracts.tables import QUARANTINE, RUNS, SNAPSHOTS
from evalake.core.errors import EvalakeError
from evalake.core.files import place_in
from evalake.core.phases import phase
from evalake.reports.console import Summary
from evalake.reports.coverage import Coverage, as_objects, lines
from evalake.reports.page import write_page
from evalake.reports.wording import count_of
from evalake.request import RunRequest
from evalake.storage.batch_jobs import jobs_of
from evalake.storage.lake import Lake
from evalake.storage.ledger import priced
from evalake.suites.registry import suite
from evalake.tasks.coverage import coverage_of
from evalake.tasks.extract import next_replicate
from evalake.tasks.report import build_report
from evalake.tasks.runtime.context import RunContext
from evalake.tasks.runtime.runs import counts_of

if TYPE_CHECKING:
    from evalake.tasks.preflight import Plan

WAITING = 3  # the exit code of a run that waits for batch jobs
MOST_REASONS = 3  # for which results are in quarantine, that are said


def finish(
    state: Any, run_id: str, request: RunRequest, out: Path, *, as_json: bool, full: bool, corrected: bool = False
) -> None:
    """Print the run of a flow's final state; exit with 3 where it waits for batch jobs, with 1 if it is incomplete."""
    run = find_run(Lake(request.lake), run_id)
    if run is None or run["ended_at"] is None:  # it failed without writing its row or its end
        raise _failure_of(state)
    if state.name == "Waiting":
        _print({**run, "state": "waiting"}, request.lake, out, as_json=as_json, full=full)
        for job in jobs_of(Lake(request.lake), run_id):
            say_error(f"batch job {job.progress}")
        say_error(f"{run['message']}; to collect what is answered: {trusting(request.command)}")
        raise typer.Exit(WAITING)
    _print(run, request.lake, out, as_json=as_json, full=full, corrected=corrected)
    if run["state"] != "completed":
        why = f": {run['message']}" if as_json or run["snapshot_id"] is None else ""  # else in the summary
        say_error(f"run {run_id} is {run['state']}{why}")
        for reason in reasons_of(Lake(request.lake), run_id):
            say_error(f"in quarantine: {reason}")
        covered = coverage_of(Lake(request.lake), run)
        if not covered or any(row.missing for row in covered):  # replies without a verdict are not asked again
            say_error(f"to continue, paying only for what is missing: {trusting(request.command)}")
        raise typer.Exit(1)


def finish_import(run: dict[str, Any], lake_uri: str, out: Path, *, as_json: bool, full: bool) -> None:
    """Print an import; exit with 1 unless it is complete."""
    _print(run, lake_uri, out, as_json=as_json, full=full)
    if run["state"] != "completed":
        say_error(f"import {run['run_id']} is {run['state']}: {run['message']}")
        if run["rows_quarantined"]:
            why = command("sql", lake=lake_uri)
            say_error(
                f"{run['rows_quarantined']} rows were refused; to see why: "
                f"{trusting(why)} \"select origin, reason from quarantine where run_id = '{run['run_id']}'\""
            )
        raise typer.Exit(1)


def reasons_of(lake: Lake, run_id: str) -> list[str]:
    """List the first reasons for which results of a run are in quarantine, each once."""
    if not lake.exists(QUARANTINE):
        return []
    ours = lake.frame(QUARANTINE).filter(pl.col("run_id") == run_id, pl.col("table_name").str.ends_with("_results"))
    return ours.select(pl.col("reason").unique().sort().head(MOST_REASONS)).collect()["reason"].to_list()


def find_run(lake: Lake, run_id: str) -> dict[str, Any] | None:
    """Find the row of a run; None without one."""
    runs = lake.frame(RUNS).filter(pl.col("run_id") == run_id).collect()
    if runs.is_empty():
        return None
    run = runs.row(0, named=True)
    return run if run["cost_usd"] is not None else run | priced(lake, run_id)


def summary(run: dict[str, Any], covered: Sequence[Coverage]) -> dict[str, Any]:
    """Build the object of `--json` for a run or an import."""
    return {
        "run_id": run["run_id"],
        "snapshot_id": run["snapshot_id"],
        "state": run["state"],
        "message": run["message"],
        "samples": run["samples"],
        "calls": {"made": run["calls_made"], "from_ledger": run["calls_from_ledger"], "failed": run["calls_failed"]},
        "rows": {
            "landed": run["rows_landed"],
            "already_present": run["rows_already_present"],
            "quarantined": run["rows_quarantined"],
        },
        "cost_usd": run["cost_usd"],
        "seconds": round((run["ended_at"] - run["started_at"]).total_seconds(), 3),
        "coverage": as_objects(covered),
        **({"differ": json.loads(run["parameters"]).get("differ", 0)} if run["origin"] == "import" else {}),
    }


def _print(
    run: dict[str, Any], lake_uri: str, out: Path, *, as_json: bool, full: bool, corrected: bool = False
) -> None:
    covered = coverage_of(Lake(lake_uri), run)
    if as_json:
        show.as_json(summary(run, covered))
        return
    if run["snapshot_id"] is None:
        show.line(f"{_outcome(run)}\nin the lake: {count_of(run['samples'], 'sample')} of {run['suite']}")
        print_coverage(covered)
        return

    with phase("write the report"):
        report = build_report(Lake(lake_uri), run["run_id"], corrected=corrected)
        page = write_page(report, place_in(out, run["run_id"]))
    show.console().print(Summary(report, whole=full))
    _print_next_steps(run, page, lake_uri)
    print_coverage(covered)


def print_coverage(covered: Sequence[Coverage]) -> None:
    """Print the coverage of the items."""
    for line in lines(covered):
        show.paragraph(line)


def _print_next_steps(run: dict[str, Any], page: Path, lake_uri: str) -> None:
    queries = suite(run["suite"], Lake(lake_uri)).presentation.queries
    show.line(f"\n{_outcome(run)}\nreport: {page}")
    if queries:
        typer.echo("try:")
    for query in queries:
        asked = query.replace("$run", f"'{run['run_id']}'")
        typer.echo(f'  {trusting(command("sql", lake=lake_uri))} "{asked}"')


def _outcome(run: dict[str, Any]) -> str:
    return f"run {run['run_id']} {run['state']}: {counts_of(run)}"


def _failure_of(state: Any) -> EvalakeError:
    error = state.result(raise_on_failure=False)
    if isinstance(error, EvalakeError):
        return error
    return EvalakeError(f"the flow run ended {state.name} before the run began: {state.message}")


def next_replicate_of(request: RunRequest) -> int:
    """Find the next free replicate, and print it."""
    number = next_replicate(Lake(request.lake), request.suite, request.models)
    say(f"asking again, as replicate {number}")
    return number


def say_changed_scorer(plan: "Plan") -> None:
    """Say that the suite's scorer is another one than in its latest snapshot, whose rows stay as they are."""
    if not plan.lake.exists(SNAPSHOTS):
        return
    ours = plan.lake.frame(SNAPSHOTS).filter(pl.col("suite") == plan.suite.name)
    latest = ours.sort("created_at").tail(1).select("run_id", "scorer_version").collect()
    for run_id, version in latest.iter_rows():
        if version != plan.suite.scoring.version:
            say(
                f"the scorer of {plan.suite.name} has changed since run {run_id} ({version}, now "
                f"{plan.suite.scoring.version}): `evalake rescore {run_id}` scores its replies again, without a call"
            )


def say_estimate(plan: "Plan", *, whole: bool, as_json: bool) -> None:
    """Print the calls and costs of the run; before a large run, by a part of its items."""
    from evalake.tasks.plan import QUICK_ITEMS, estimate

    context = RunContext("", plan.suite.name, plan.lake, plan.configuration)
    planned = estimate(context, plan, None if whole else QUICK_ITEMS)
    if as_json:
        show.as_json(planned.as_dict())
        return
    for line in planned.lines():
        (show.line if whole else say)(line)
