"""`evalake snapshots`: lists the metric snapshots, newest first, or verifies one."""

from typing import Annotated

import typer

from evalake.cli.help import App, Group
from evalake.cli.options import (
    LAKE,
    Format,
    JsonOption,
    LakeOption,
    RowsAsJsonOption,
    StyleOption,
    SuiteOption,
    style_of,
)
from evalake.core.errors import UsageError

COLUMNS = ("snapshot_id", "suite", "run_id", "created_at", "definition_hash", "pinned_versions", "warnings")

group = App(cls=Group, invoke_without_command=True)


def register(app: typer.Typer) -> None:
    """Add the command and its subcommands."""
    app.add_typer(group, name="snapshots")


@group.callback()
def snapshots(
    context: typer.Context,
    suite: SuiteOption = None,
    lake: LakeOption = LAKE,
    style: StyleOption = Format.table,
    json: RowsAsJsonOption = False,
) -> None:
    """List the snapshots, newest first; or verify one."""
    import polars as pl

    from evalake.cli import output as show
    from evalake.contracts.tables import SNAPSHOTS
    from evalake.storage.lake import Lake
    from evalake.tasks.runtime.runs import of_suite

    style = style_of(style, as_json=json)

    if context.invoked_subcommand is not None:
        _refuse_options(context)
        return
    rows = of_suite(Lake(lake).frame(SNAPSHOTS), suite).sort("created_at", descending=True).collect()
    if style is Format.table:
        rows = rows.with_columns(pl.col("snapshot_id").str.slice(0, 12), pl.col("definition_hash").str.slice(0, 12))
    show.listing("snapshots", rows, lake, style, COLUMNS)


@group.command("verify")
def verify(
    snapshot_id: Annotated[str, typer.Argument(help="A snapshot, or the beginning of its id.", metavar="ID")],
    lake: LakeOption = LAKE,
    json: JsonOption = False,
) -> None:
    """Prove a snapshot: recompute its values from the table versions that it pins.

    Exits with 0 where all values are equal, 1 where one differs, 3 where they could not be recomputed.
    """
    from evalake.admin.prove import verify_snapshot
    from evalake.cli import output as show
    from evalake.storage.lake import Lake

    proof = verify_snapshot(Lake(lake), snapshot_id)
    if json:
        show.as_json({"snapshot_id": proof.snapshot_id, "outcome": proof.outcome, "reason": proof.reason or None})
    else:
        show.line(f"snapshot {proof.name}: {proof.outcome}{f': {proof.reason}' if proof.reason else ''}")
    if proof.exit_code:
        raise typer.Exit(proof.exit_code)


def _refuse_options(context: typer.Context) -> None:
    """Refuse options of the listing before a subcommand, which would ignore them."""
    options = {"suite": "--suite", "lake": "--lake", "style": "--format", "json": "--json"}
    given = [option for name, option in options.items() if _on_command_line(context, name)]
    if given:
        command = f"evalake snapshots {context.invoked_subcommand}"
        raise UsageError(f"{given[0]} does not fit `{command}`: see `{command} -h`")


def _on_command_line(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"
