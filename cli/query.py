"""`evalake sql` and `evalake metrics`: read the tables."""

import re
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated

import typer

from cli.options import LAKE, Format, LakeOption

METRIC_FIELDS = (
    "suite", "model", "judge", "slice", "slice_value", "metric", "tier", "value", "n", "se", "ci_low", "ci_high",
    "reliable",
)  # fmt: skip


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("sql")(sql)
    app.command("metrics")(metrics)


def sql(
    query: Annotated[
        str, typer.Argument(help="A query over the tables and views; `evalake tables --describe` has them.")
    ],
    lake: LakeOption = LAKE,
    at: Annotated[
        list[str] | None,
        typer.Option(
            "--at", help="Read a table as it was at a version; may be given several times.", metavar="TABLE=VERSION"
        ),
    ] = None,
    style: Annotated[
        str, typer.Option("--format", help="How rows are printed.", metavar="table|json|csv|parquet")
    ] = "table",
    out: Annotated[
        Path | None, typer.Option("--out", help="Write there instead; parquet needs it.", metavar="FILE")
    ] = None,
) -> None:
    """Ask the tables a question in SQL (DuckDB's)."""
    from polars.exceptions import PolarsError

    from cli import show
    from contracts.errors import LakeError, UsageError
    from storage.lake import Lake
    from storage.sql import query as run_query
    from suites.registry import all_contracts

    if style not in ("table", "json", "csv", "parquet"):
        raise UsageError(f"--format is table, json, csv or parquet, not {style}")
    if style == "parquet" and out is None:
        raise UsageError("--format parquet needs --out FILE")
    where = Lake(lake)
    found = run_query(where, all_contracts(), query, versions=_versions(at or []))
    if found.is_empty() and not any(map(where.exists, all_contracts())):
        typer.echo(f"the lake {lake} has no tables", err=True)
    if out is None:
        show.rows(found, Format(style))
        return
    try:
        if style == "parquet":
            found.write_parquet(out)
        else:
            with out.open("w", encoding="utf-8") as file, redirect_stdout(file):
                show.rows(found, Format(style))
    except (OSError, PolarsError) as error:  # the latter is how a writer of Parquet says that the disk is full
        raise LakeError(f"cannot write {out}: {getattr(error, 'strerror', None) or error}") from error
    typer.echo(f"{found.height} rows in {out}")


def metrics(
    run: Annotated[str | None, typer.Option("--run", help="A run's newest snapshot.", metavar="ID")] = None,
    snapshot: Annotated[
        str | None, typer.Option("--snapshot", help="A snapshot, or the beginning of its id.", metavar="ID")
    ] = None,
    lake: LakeOption = LAKE,
    style: Annotated[Format, typer.Option("--format", help="How rows are printed.")] = Format.table,
) -> None:
    """Print the metrics of a snapshot; without options, of the newest."""
    from cli import show
    from contracts.errors import UsageError
    from storage.lake import Lake
    from storage.snapshots import find_snapshot, read_metrics

    if run and snapshot:
        raise UsageError("give --run or --snapshot, not both")
    where = Lake(lake)
    found = find_snapshot(where, run_id=run, snapshot_id=snapshot)
    values = read_metrics(where, found["snapshot_id"]).select(METRIC_FIELDS)
    if style is Format.table:
        typer.echo(
            f"snapshot {found['snapshot_id'][:12]} of run {found['run_id']}, made {found['created_at']:%Y-%m-%d %H:%M}"
        )
    show.rows(values, style, [name for name in METRIC_FIELDS if name != "suite"])


def _versions(pairs: list[str]) -> dict[str, int]:
    from contracts.errors import UsageError

    versions = {}
    for pair in pairs:
        table, _, version = pair.partition("=")
        if not re.fullmatch("[0-9]{1,18}", version):  # what a Delta version can be
            raise UsageError(f"--at takes TABLE=VERSION, such as samples=3, not {pair}")
        versions[table] = int(version)
    return versions
