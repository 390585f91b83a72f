"""`evalake run`: evaluate models on a suite."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import (
    LAKE,
    AcceptUnreadableOption,
    ConfigOption,
    DatasetOption,
    JsonOption,
    JudgesOption,
    LakeOption,
    MaxMissingOption,
    NoteOption,
    TagsOption,
    names,
)
from cli.starting import flows_begun, start_server
from cli.suites_told import TellsSuites, complete_suite
from cli.terminal import say

if TYPE_CHECKING:
    from tasks.steps.preflight import Plan


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("run", cls=TellsSuites)(run)


def run(
    suite: Annotated[
        str, typer.Argument(help="The suite; they are listed below.", metavar="SUITE", autocompletion=complete_suite)
    ],
    models: Annotated[
        str | None, typer.Option(help="Subject models, by comma; default: the suite's baselines.", metavar="NAMES")
    ] = None,
    judges: JudgesOption = None,
    dataset: DatasetOption = None,
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="N samples of each dataset, drawn evenly over labels and categories.", metavar="N"),
    ] = None,
    first: Annotated[int | None, typer.Option(min=1, help="The first N samples of each dataset.", metavar="N")] = None,
    sample: Annotated[
        list[str] | None, typer.Option(help="A sample by its name; may be given several times.", metavar="ID")
    ] = None,
    only_failed: Annotated[
        str | None,
        typer.Option(help="The samples without an answer in a run; models and datasets as there.", metavar="RUN"),
    ] = None,
    replicates: Annotated[int, typer.Option(min=1, help="How often each request is asked.", metavar="N")] = 1,
    again: Annotated[
        bool, typer.Option("--again", help="Ask anew what was asked before, under the next free replicate.")
    ] = False,
    first_replicate: Annotated[
        int, typer.Option(min=0, help="The number of the first replicate; --again finds it.", metavar="N")
    ] = 0,
    prompt_types: Annotated[
        str | None, typer.Option(help="The suite's prompt types, by comma.", metavar="NAMES")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Ask nothing: say which calls would be made, and about what they cost.")
    ] = False,
    max_cost: Annotated[
        float | None,
        typer.Option(
            help="Start no call that could make the run cost more; a lower configured ceiling holds.", metavar="USD"
        ),
    ] = None,
    max_calls: Annotated[
        int | None, typer.Option(help="Make no more calls than these; a lower configured ceiling holds.", metavar="N")
    ] = None,
    max_missing: MaxMissingOption = None,
    accept_unreadable: AcceptUnreadableOption = False,
    tag: TagsOption = None,
    note: NoteOption = None,
    config: ConfigOption = None,
    out: Annotated[Path, typer.Option(help="Where the report goes.", metavar="DIR")] = Path("evalake-reports"),
    lake: LakeOption = LAKE,
    json: JsonOption = False,
) -> None:
    """Evaluate models on a suite: only what the ledger does not know yet is asked."""
    from cli.configuration import read
    from providers.routes import require_usual_keys

    subjects, judging = names("--models", models), names("--judges", judges)
    configuration = read(config)
    if not dry_run:
        require_usual_keys([*(subjects or ()), *(judging or ())], configuration)
    server = None if dry_run else start_server()

    from tasks.steps.announce import lines_of
    from tasks.steps.preflight import Order, carried, check

    order = Order(
        suite=suite,
        lake=lake,
        models=subjects,
        judges=judging,
        datasets=dataset,
        limit=limit,
        replicates=replicates,
        prompt_types=names("--prompt-types", prompt_types),
        configuration_file=str(config) if config else None,
        max_cost_usd=max_cost,
        max_calls=max_calls,
        max_missing=max_missing,
        accept_unreadable=accept_unreadable,
        first=first,
        samples=sample,
        only_failed=only_failed,
        first_replicate=_next_replicate(suite, subjects, lake) if again else first_replicate,
        tags=tag or (),
        note=note,
    )
    plan = check(order, with_keys=not dry_run)
    if not json:
        for line in lines_of(plan):  # what will be evaluated, and what was left out
            say(line)
    if dry_run or not json:
        _estimate(plan, whole=dry_run, as_json=json)
    if dry_run:
        return
    if server and not json:
        say("waiting for a Prefect server …")

    from cli.outcome import finish
    from flows.evaluate import evaluate
    from flows.opening import run_id_of

    with flows_begun(server), carried(order, plan):
        state = evaluate(**order.parameters, return_state=True)
    finish(state, run_id_of(str(state.state_details.flow_run_id)), lake, out, order.command, as_json=json)


def _next_replicate(suite: str, models: list[str] | None, lake: str) -> int:
    """Find the number under which models are asked anew, and say it."""
    from storage.lake import Lake
    from tasks.steps.choose import next_replicate

    number = next_replicate(Lake(lake), suite, models)
    say(f"asking anew, as replicate {number}")
    return number


def _estimate(plan: "Plan", *, whole: bool, as_json: bool) -> None:
    """Say what the run would ask and pay; of a large run that is about to begin, by a part of its items."""
    from cli import output as show
    from tasks.runtime.context import RunContext
    from tasks.steps.estimate import QUICK_ITEMS, estimate

    context = RunContext("", plan.suite.name, plan.lake, plan.configuration)
    planned = estimate(context, plan, None if whole else QUICK_ITEMS)
    if as_json:
        show.as_json(planned.as_dict())
        return
    for line in planned.lines():
        (show.line if whole else say)(line)
