"""`evalake run`: evaluates models on a suite.

Heavy libraries are imported once the request is sound, while the Prefect server starts.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from evalake.cli import options
from evalake.cli.help import App, SuiteCommand, complete_suite
from evalake.cli.terminal import flows_begun, say, start_server
from evalake.core.phases import phase
from evalake.request import OPTIONS, RunRequest

app = App()


@app.command("run", cls=SuiteCommand)
@options.takes(*list(OPTIONS)[1:])
def run(
    asked: Mapping[str, Any],
    suite: Annotated[str, typer.Argument(help=OPTIONS["suite"].text, metavar="SUITE", autocompletion=complete_suite)],
    again: Annotated[bool, typer.Option("--again", help="Repeat known calls, under the next free replicate.")] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Make no calls; print how many a run would make, and their estimated cost."),
    ] = False,
    out: Annotated[Path, typer.Option(help="The folder of the report.", metavar="DIR")] = Path("evalake-reports"),
    full: options.Full = False,
    corrected: options.Corrected = False,
    json: options.Json = False,
) -> None:
    """Evaluate models on a suite; the ledger answers known calls."""
    from evalake.cli.configuration import read, suite_name
    from evalake.models.routes import require_usual_keys

    request = RunRequest(suite_name(suite), **asked)
    configuration = read(request.configuration_file)
    if not dry_run:
        require_usual_keys([*request.models, *request.judges], configuration)
    server = None if dry_run else start_server()

    from evalake.cli.outcome import finish, next_replicate_of, say_changed_scorer, say_estimate
    from evalake.tasks.preflight import carried, check, lines_of

    if again:
        request = replace(request, first_replicate=next_replicate_of(request))
    with phase("read the suite and its samples"):
        plan = check(request, dry_run=dry_run)
    if not json:
        for line in lines_of(plan):  # the samples, and the left-out ones
            say(line)
        say_changed_scorer(plan)
    if dry_run or not json:
        with phase("look up the ledger"):
            say_estimate(plan, whole=dry_run, as_json=json)
    if dry_run:
        return
    if server and not json:
        say("waiting for a Prefect server …")

    with phase("load Prefect and the flow"):
        from evalake.flows.evaluate import evaluate
    from evalake.tasks.runtime.form import run_id_of
    from evalake.tasks.runtime.runs import run_of_flow

    with flows_begun(server), carried(request, plan):
        state = evaluate(**request.parameters, return_state=True)
    flow_run_id = str(state.state_details.flow_run_id)
    run_id = run_of_flow(plan.lake, flow_run_id) or run_id_of(flow_run_id)
    finish(state, run_id, request, out, as_json=json, full=full, corrected=corrected)
