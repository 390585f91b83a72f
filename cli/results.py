"""What a finished run or import prints: the counts for machines; tables, report and next steps for people."""

import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import polars as pl
import typer

from cli import show
from cli.options import LAKE
from contracts.errors import EvalakeError
from contracts.tables import RUNS
from storage.lake import Lake


def finish(state: Any, run_id: str, lake_uri: str, out: Path, *, as_json: bool) -> None:
    """Print the run that a flow's final state belongs to; exit with 1 unless it is complete."""
    run = find_run(Lake(lake_uri), run_id)
    if run is None or run["ended_at"] is None:  # it failed before its row was written, or could not write its end
        raise _failure_of(state)
    _print(run, lake_uri, out, as_json=as_json)
    if run["state"] != "completed":
        typer.echo(f"evalake: run {run_id} is {run['state']}: {run['message']}", err=True)
        raise typer.Exit(1)


def finish_import(run: dict[str, Any], lake_uri: str, out: Path, *, as_json: bool) -> None:
    """Print an import; exit with 1 where anything was refused."""
    _print(run, lake_uri, out, as_json=as_json)
    if run["rows_quarantined"]:
        typer.echo(f"evalake: {run['rows_quarantined']} rows were refused: {run['message']}", err=True)
        raise typer.Exit(1)


def find_run(lake: Lake, run_id: str) -> dict[str, Any] | None:
    """The row of a run; None where there is none."""
    found = lake.frame(RUNS).filter(pl.col("run_id") == run_id).collect()
    return found.row(0, named=True) if found.height else None


def summary(run: dict[str, Any]) -> dict[str, Any]:
    """What `--json` promises of a run or an import."""
    return {
        "run_id": run["run_id"],
        "snapshot_id": run["snapshot_id"],
        "state": run["state"],
        "samples": run["samples"],
        "calls": {"made": run["calls_made"], "from_ledger": run["calls_from_ledger"], "failed": run["calls_failed"]},
        "rows": {
            "landed": run["rows_landed"],
            "already_present": run["rows_already_present"],
            "quarantined": run["rows_quarantined"],
        },
        "cost_usd": run["cost_usd"],
        "seconds": round((run["ended_at"] - run["started_at"]).total_seconds(), 3),
    }


def _print(run: dict[str, Any], lake_uri: str, out: Path, *, as_json: bool) -> None:
    if as_json:
        show.as_json(summary(run))
        return
    if run["snapshot_id"] is None:
        typer.echo(f"{_counts(run)}\n{run['samples']} samples of {run['suite']} are in the lake")
        return
    from reports.console import Summary
    from reports.page import write_page
    from tasks.report import build_report

    report = build_report(Lake(lake_uri), run["run_id"])
    show.console().print(Summary(report))
    page = write_page(report, out / run["run_id"])
    _print_next_steps(run, page, lake_uri)


def _print_next_steps(run: dict[str, Any], page: Path, lake_uri: str) -> None:
    from suites.registry import suite

    # The command as it was typed, where it is not on the path: what is printed can be copied.
    words = ["evalake" if shutil.which("evalake") else sys.argv[0], "sql"]
    if lake_uri != LAKE:
        words += ["--lake", lake_uri]
    queries = suite(run["suite"]).queries
    typer.echo(f"\n{_counts(run)}\nreport: {page}")
    if queries:
        typer.echo("try:")
    for query in queries:
        typer.echo(f'  {shlex.join(words)} "{query}"')


def _counts(run: dict[str, Any]) -> str:
    cost = "unknown" if run["cost_usd"] is None else f"{run['cost_usd']:.4f} USD"
    calls = f"{run['calls_made']} calls made, {run['calls_from_ledger']} from the ledger, {run['calls_failed']} failed"
    rows = f"{run['rows_landed']} rows landed, {run['rows_already_present']} already present"
    refused = f"{run['rows_quarantined']} in quarantine"
    return f"run {run['run_id']} {run['state']}: {calls}; {rows}, {refused}; cost {cost}"


def _failure_of(state: Any) -> EvalakeError:
    error = state.result(raise_on_failure=False)
    if isinstance(error, EvalakeError):
        return error
    return EvalakeError(f"the flow run ended {state.name} before the run began: {state.message}")
