"""`evalake run`: evaluates models on a suite."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evalake.cli.environment import flows_begun, start_server
from evalake.cli.help import SuiteCommand, complete_suite
from evalake.cli.options import CorrectedOption, FullOption, JsonOption, takes
from evalake.cli.terminal import say
from evalake.core.phases import phase
from evalake.request import OPTIONS, RunRequest

if TYPE_CHECKING:
    from evalake.tasks.preflight import Plan


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("run", cls=SuiteCommand)(run)


@takes(*list(OPTIONS)[1:])
def run(
    asked: Mapping[str, Any],
    suite: Annotated[str, typer.Argument(help=OPTIONS["suite"].text, metavar="SUITE", autocompletion=complete_suite)],
    again: Annotated[bool, typer.Option("--again", help="Repeat known calls, under the next free replicate.")] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Make no calls; print how many a run would make, and their estimated cost."),
    ] = False,
    out: Annotated[Path, typer.Option(help="The folder of the report.", metavar="DIR")] = Path("evalake-reports"),
    full: FullOption = False,
    corrected: CorrectedOption = False,
    json: JsonOption = False,
) -> None:
    """Evaluate models on a suite; the ledger answers known calls."""
    from evalake.cli.configuration import read
    from evalake.cli.trust import is_path, suite_at
    from evalake.models.routes import require_usual_keys

    suite = suite_at(suite) if is_path(suite) else suite
    request = RunRequest(suite, **asked)
    configuration = read(request.configuration_file)
    if not dry_run:
        require_usual_keys([*request.models, *request.judges], configuration)
    server = None if dry_run else start_server()

    from evalake.tasks.preflight import carried, check, lines_of

    if again:
        request = replace(request, first_replicate=_next_replicate(request))
    with phase("read the suite and its samples"):
        plan = check(request, with_keys=not dry_run)
    if not json:
        for line in lines_of(plan):  # the samples, and the left-out ones
            say(line)
        _say_changed_scorer(plan)
    if dry_run or not json:
        with phase("look up the ledger"):
            _estimate(plan, whole=dry_run, as_json=json)
    if dry_run:
        return
    if server and not json:
        say("waiting for a Prefect server …")

    with phase("load Prefect and the flow"):
        from evalake.cli.outcome import finish
        from evalake.flows.evaluate import evaluate
    from evalake.tasks.runtime.form import run_id_of
    from evalake.tasks.runtime.runs import run_of_flow

    with flows_begun(server), carried(request, plan):
        state = evaluate(**request.parameters, return_state=True)
    flow_run_id = str(state.state_details.flow_run_id)
    run_id = run_of_flow(plan.lake, flow_run_id) or run_id_of(flow_run_id)
    finish(state, run_id, request, out, as_json=json, full=full, corrected=corrected)


def _next_replicate(request: RunRequest) -> int:
    """Find the next free replicate, and print it."""
    from evalake.storage.lake import Lake
    from evalake.tasks.extract import next_replicate

    number = next_replicate(Lake(request.lake), request.suite, request.models)
    say(f"asking again, as replicate {number}")
    return number


def _say_changed_scorer(plan: "Plan") -> None:
    """Say that the suite's scorer is another one than in its latest snapshot, whose rows stay as they are."""
    import polars as pl

    from evalake.contracts.tables import SNAPSHOTS

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


def _estimate(plan: "Plan", *, whole: bool, as_json: bool) -> None:
    """Print the calls and costs of the run; before a large run, by a part of its items."""
    from evalake.cli import output as show
    from evalake.tasks.plan import QUICK_ITEMS, estimate
    from evalake.tasks.runtime.context import RunContext

    context = RunContext("", plan.suite.name, plan.lake, plan.configuration)
    planned = estimate(context, plan, None if whole else QUICK_ITEMS)
    if as_json:
        show.as_json(planned.as_dict())
        return
    for line in planned.lines():
        (show.line if whole else say)(line)
