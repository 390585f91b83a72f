"""`evalake runs`: list the runs, newest first."""

from typing import Annotated

import typer

from evalake.cli.options import LAKE, Format, LakeOption, RowsAsJsonOption, StyleOption, style_of

COLUMNS = (
    "run_id", "suite", "state", "done", "started", "samples", "cost_usd", "tags", "models", "calls_made",
    "calls_from_ledger", "calls_failed", "rows_quarantined", "started_by", "attempts", "note", "changed", "message",
)  # fmt: skip


def runs(
    tag: Annotated[str | None, typer.Option(help="Only runs with this tag.", metavar="TAG")] = None,
    lake: LakeOption = LAKE,
    style: StyleOption = Format.table,
    json: RowsAsJsonOption = False,
) -> None:
    """List the runs, newest first."""
    import polars as pl

    from evalake.cli import output as show
    from evalake.contracts.tables import RUNS
    from evalake.decisions.trend import headline_changes
    from evalake.storage.lake import Lake
    from evalake.tasks.runtime.attempts import with_attempts
    from evalake.tasks.runtime.runs import tagged, with_labels, with_lost

    style = style_of(style, as_json=json)

    where = Lake(lake)
    wanted = with_labels(with_attempts(where, with_lost(where.frame(RUNS))))
    rows = tagged(wanted, tag).sort("started_at", descending=True).collect()
    changes: dict[str, list[str]] = {}
    for each in headline_changes(where):
        changes.setdefault(each.run_id, []).append(each.sentence)
    told = [changes.get(run_id) for run_id in rows["run_id"]]
    rows = rows.with_columns(changed=pl.Series(told, dtype=pl.List(pl.String())))
    if style is Format.table:
        rows = rows.with_columns(
            done=pl.format("{} of {}", "items_done", "items"),
            started=pl.col("started_at").dt.strftime("%m-%d %H:%M"),
            tags=pl.when(pl.col("tags").list.len() > 0).then("tags"),
        )
    show.listing("runs" if tag is None else f"runs tagged {tag}", rows, lake, style, COLUMNS)
