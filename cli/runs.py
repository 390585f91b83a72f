"""`evalake runs`: list the runs, newest first."""

import typer

from cli.options import LAKE, Format, LakeOption, RowsAsJsonOption, StyleOption, style_of

COLUMNS = (
    "run_id", "suite", "state", "started", "samples", "cost_usd", "models", "calls_made", "calls_from_ledger",
    "calls_failed", "rows_quarantined", "started_by", "attempts", "message",
)  # fmt: skip


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("runs")(runs)


def runs(lake: LakeOption = LAKE, style: StyleOption = Format.table, json: RowsAsJsonOption = False) -> None:
    """List the runs, newest first."""
    import polars as pl

    from cli import output as show
    from contracts.tables import RUNS
    from storage.lake import Lake
    from tasks.runtime.attempts import with_attempts
    from tasks.runtime.runs import with_lost

    style = style_of(style, as_json=json)

    where = Lake(lake)
    rows = with_attempts(where, with_lost(where.frame(RUNS))).sort("started_at", descending=True).collect()
    if style is Format.table:
        rows = rows.with_columns(started=pl.col("started_at").dt.strftime("%m-%d %H:%M"))
    show.listing("runs", rows, lake, style, COLUMNS)
