"""`evalake run`: evaluate models on a suite."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.options import LAKE, JsonOption, LakeOption, names

if TYPE_CHECKING:
    from tasks.preflight import Plan


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("run")(run)


def run(
    suite: Annotated[str, typer.Argument(help="The suite, such as command_guard.")],
    models: Annotated[
        str | None, typer.Option(help="Subject models, by comma; default: the suite's baselines.")
    ] = None,
    judges: Annotated[str | None, typer.Option(help="Judge models, by comma, where the suite has judges.")] = None,
    dataset: Annotated[
        list[str] | None, typer.Option(help="A source of samples; may be given several times.", metavar="SOURCE")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N samples of each dataset.")] = None,
    replicates: Annotated[int, typer.Option(min=1, help="How often each request is asked.")] = 1,
    prompt_types: Annotated[str | None, typer.Option(help="The suite's prompt types, by comma.")] = None,
    config: Annotated[Path | None, typer.Option(help="In place of ./evalake.toml.", metavar="FILE")] = None,
    out: Annotated[Path, typer.Option(help="Where the report goes.", metavar="DIR")] = Path("evalake-reports"),
    lake: LakeOption = LAKE,
    json: JsonOption = False,
) -> None:
    """Evaluate models on a suite: only what the ledger does not know yet is asked."""
    from tasks.preflight import Order, check

    order = Order(
        suite=suite,
        lake=lake,
        models=names("--models", models),
        judges=names("--judges", judges),
        datasets=dataset,
        limit=limit,
        replicates=replicates,
        prompt_types=names("--prompt-types", prompt_types),
        configuration_file=str(config) if config else None,
    )
    plan = check(order)
    if not json:
        _announce(plan)

    from cli.interrupt import leave_at_once
    from cli.results import finish
    from flows.evaluate import evaluate, run_id_of
    from tasks.prefect_server import require_server

    require_server()
    parameters: dict[str, Any] = {
        "suite": order.suite,
        "models": order.models,
        "judges": order.judges,
        "datasets": order.datasets,
        "limit": order.limit,
        "replicates": order.replicates,
        "prompt_types": order.prompt_types,
        "lake": order.lake,
        "configuration_file": order.configuration_file,
    }
    leave_at_once()
    state = evaluate(**parameters, return_state=True)
    finish(state, run_id_of(str(state.state_details.flow_run_id)), lake, out, as_json=json)


def _announce(plan: "Plan") -> None:
    """Say what will be evaluated: the datasets with their counts by category, and what was left out of each."""
    from cli.terminal import harmless
    from suites.sources import summary

    for dataset in plan.datasets:
        counts = summary(dataset)
        parts = ", ".join(f"{category} {count}" for category, count in counts.samples.items())
        left_out = ", ".join(f"{count} {reason}" for reason, count in counts.left_out.items())
        typer.echo(harmless(f"{dataset.name}: {len(dataset.samples)} samples ({parts})"), err=True)
        if left_out:
            typer.echo(f"  left out: {left_out}", err=True)
    typer.echo(f"{plan.items} items, {', '.join(plan.models)}; starting Prefect …", err=True)
