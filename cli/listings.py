"""`evalake runs`, `snapshots` and `tables`: what there is, newest first."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import LAKE, Format, LakeOption

if TYPE_CHECKING:
    import polars as pl

StyleOption = Annotated[Format, typer.Option("--format", help="How rows are printed.")]

RUN_COLUMNS = (
    "run_id", "suite", "state", "started_at", "models", "samples", "calls_made", "calls_from_ledger", "calls_failed",
    "rows_quarantined", "cost_usd",
)  # fmt: skip
SNAPSHOT_COLUMNS = ("snapshot_id", "suite", "run_id", "created_at", "pinned_versions", "definition_hash", "warnings")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("runs")(runs)
    app.command("snapshots")(snapshots)
    app.command("tables")(tables)


def runs(lake: LakeOption = LAKE, style: StyleOption = Format.table) -> None:
    """List the runs, newest first."""
    from contracts.tables import RUNS
    from storage.lake import Lake
    from tasks.runs import with_lost

    found = with_lost(Lake(lake).frame(RUNS)).sort("started_at", descending=True).collect()
    _list("runs", found, lake, style, RUN_COLUMNS)


def snapshots(lake: LakeOption = LAKE, style: StyleOption = Format.table) -> None:
    """List the snapshots, newest first."""
    import polars as pl

    from contracts.tables import SNAPSHOTS
    from storage.lake import Lake

    found = Lake(lake).frame(SNAPSHOTS).sort("created_at", descending=True).collect()
    if style is Format.table:
        found = found.with_columns(pl.col("snapshot_id").str.slice(0, 12), pl.col("definition_hash").str.slice(0, 12))
    _list("snapshots", found, lake, style, SNAPSHOT_COLUMNS)


def tables(
    table: Annotated[str | None, typer.Argument(help="With --describe: only this table or view.")] = None,
    describe: Annotated[bool, typer.Option("--describe", help="Columns, types, keys and rules, views too.")] = False,
    lake: LakeOption = LAKE,
    style: StyleOption = Format.table,
) -> None:
    """List the tables, most recently changed first; or describe their columns."""
    from contracts.errors import UsageError
    from storage.inventory import inventory
    from storage.lake import Lake
    from suites.registry import all_contracts

    if describe:
        _describe(table, lake, style)
    elif table is not None:
        raise UsageError(f"to see the columns of {table}: evalake tables --describe {table}")
    else:
        _list("tables", inventory(Lake(lake), all_contracts()), lake, style)


def _list(what: str, found: "pl.DataFrame", lake: str, style: Format, columns: Sequence[str] | None = None) -> None:
    """Print a listing; that it is empty is said beside it, for the name of the lake may be misspelt."""
    from cli import show

    show.rows(found, style, columns)
    if found.is_empty():
        typer.echo(f"the lake {lake} has no {what}", err=True)


def _describe(table: str | None, lake: str, style: Format) -> None:
    from cli import show
    from storage.catalogue import COLUMN_FIELDS, catalogue, column_frame
    from storage.lake import Lake
    from suites.registry import all_contracts

    entries = catalogue(Lake(lake), all_contracts(), table)
    if style is Format.json:
        show.as_json([entry.as_dict() for entry in entries])
    elif style is Format.csv:
        show.rows(column_frame(entries), style)
    else:
        for entry in entries:
            typer.echo(f"\n{entry.kind} {entry.name}: {entry.description}")
            for rule in entry.rules:
                typer.echo(f"  {rule}")
            show.rows(column_frame([entry]), style, COLUMN_FIELDS)
