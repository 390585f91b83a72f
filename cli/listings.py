"""`evalake runs`, `snapshots` and `tables`: what there is, newest first."""

from typing import Annotated

import typer

from cli.options import LAKE, Format, LakeOption

StyleOption = Annotated[Format, typer.Option("--format")]

RUN_COLUMNS = (
    "run_id", "suite", "state", "started_at", "models", "samples", "calls_made", "calls_from_ledger", "calls_failed",
    "rows_quarantined", "cost_usd",
)  # fmt: skip


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("runs")(runs)
    app.command("snapshots")(snapshots)
    app.command("tables")(tables)


def runs(lake: LakeOption = LAKE, style: StyleOption = Format.table) -> None:
    """List the runs, newest first."""
    from cli import show
    from contracts.tables import RUNS
    from storage.lake import Lake

    found = Lake(lake).frame(RUNS).sort("started_at", descending=True).collect()
    show.rows(found, style, RUN_COLUMNS)


def snapshots(lake: LakeOption = LAKE, style: StyleOption = Format.table) -> None:
    """List the snapshots, newest first."""
    import polars as pl

    from cli import show
    from contracts.tables import SNAPSHOTS
    from storage.lake import Lake

    found = Lake(lake).frame(SNAPSHOTS).sort("created_at", descending=True).collect()
    if style is Format.table:
        found = found.with_columns(pl.col("snapshot_id").str.slice(0, 12), pl.col("definition_hash").str.slice(0, 12))
    show.rows(
        found, style, ("snapshot_id", "suite", "run_id", "created_at", "pinned_versions", "definition_hash", "warnings")
    )


def tables(lake: LakeOption = LAKE, style: StyleOption = Format.table) -> None:
    """List the tables, most recently changed first."""
    from cli import show
    from storage.inventory import inventory
    from storage.lake import Lake
    from suites.registry import all_contracts

    show.rows(inventory(Lake(lake), all_contracts()), style)
