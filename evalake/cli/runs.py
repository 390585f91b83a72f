"""`evalake runs`: lists the runs, newest first."""

from collections.abc import Sequence
from typing import Annotated

import typer

from evalake.cli.options import LAKE, Format, LakeOption, RowsAsJsonOption, StyleOption, SuiteOption, style_of

COLUMNS = (
    "run_id", "suite", "models", "state", "done", "started", "samples", "cost_usd", "tags", "calls_made",
    "calls_from_ledger", "calls_failed", "rows_quarantined", "started_by", "attempts", "note", "changed", "message",
)  # fmt: skip
MODEL_WIDTH = 20  # characters of a model's name in the table


def runs(
    suite: SuiteOption = None,
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
    from evalake.tasks.runtime.runs import of_suite, tagged, with_labels, with_state

    style = style_of(style, as_json=json)

    where = Lake(lake)
    wanted = with_labels(with_attempts(where, with_state(where, where.frame(RUNS))))
    rows = tagged(of_suite(wanted, suite), tag).sort("started_at", descending=True).collect()
    changes: dict[str, list[str]] = {}
    for each in headline_changes(where):
        changes.setdefault(each.run_id, []).append(each.sentence)
    told = [changes.get(run_id) for run_id in rows["run_id"]]
    rows = rows.with_columns(changed=pl.Series(told, dtype=pl.List(pl.String())))
    if style is Format.table:
        rows = rows.with_columns(
            done=pl.format("{} of {}", "items_done", "items"),
            started=pl.col("started_at").dt.strftime("%m-%d %H:%M"),
            models=pl.col("models").map_elements(_brief, return_dtype=pl.String),
            tags=pl.when(pl.col("tags").list.len() > 0).then("tags"),
        )
    what = f"runs of {suite}" if suite else "runs"
    show.listing(what if tag is None else f"{what} tagged {tag}", rows, lake, style, COLUMNS)


def _brief(models: Sequence[str]) -> str:
    """Shorten the models of a run to the name of the first and the number of others; a dash for none."""
    if not len(models):
        return "–"
    first, others = models[0].rsplit("/", 1)[-1], len(models) - 1
    first = first if len(first) <= MODEL_WIDTH else f"{first[: MODEL_WIDTH - 1]}…"
    return f"{first} +{others}" if others else first
