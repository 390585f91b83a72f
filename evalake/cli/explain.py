"""`evalake explain`: splits the difference of two snapshots into exact parts by cause."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from evalake.cli.configuration import command
from evalake.cli.options import LAKE, Format, LakeOption, RowsAsJsonOption, StyleOption, style_of
from evalake.core.errors import UsageError

if TYPE_CHECKING:
    import polars as pl

LISTED = ("part", "side", "dataset", "sample_id", "replicate", "prompt_hash")


def explain(
    a: Annotated[str, typer.Argument(help="A run, a snapshot, RUN:MODEL, or a model of a run.", metavar="A")],
    b: Annotated[str, typer.Argument(help="The other side, in the same form.", metavar="B")],
    metric: Annotated[
        str | None, typer.Option("--metric", help="The metric; default: the ranking one.", metavar="NAME")
    ] = None,
    rows: Annotated[str | None, typer.Option("--rows", help="List the result rows of a part.", metavar="PART")] = None,
    run: Annotated[
        str | None,
        typer.Option("--run", help="The run of the models; default: the newest with them.", metavar="ID"),
    ] = None,
    lake: LakeOption = LAKE,
    style: StyleOption = Format.table,
    json: RowsAsJsonOption = False,
) -> None:
    """Split A - B into samples, replies, judge, code and repeats; the parts sum up to it."""
    import polars as pl

    from evalake.cli import output as show
    from evalake.decisions.explain import Part
    from evalake.decisions.explain import explain as split
    from evalake.storage.lake import Lake

    style = style_of(style, as_json=json)

    if rows is not None and rows not in list(Part):
        raise UsageError(f"a difference has no part {rows}: choose one of {', '.join(Part)}")
    explained = split(Lake(lake), a, b, run_id=run, metric=metric)
    if rows is not None:
        behind = explained.rows.filter(pl.col("part") == rows)
        if style is Format.table:
            behind = behind.with_columns(pl.col("prompt_hash").str.slice(0, 12))
        show.listing(f"rows behind {rows}", behind, lake, style, LISTED)
    elif style is Format.table:
        _print(explained.parts)
        behind = explained.parts.filter(explained.parts["samples"] > 0)
        for part in behind["part"].unique(maintain_order=True):
            typer.echo(f"rows: {command('explain', a, b, metric=metric, lake=lake, run=run, rows=part)}")
    else:
        show.rows(explained.parts, style)


def _print(parts: "pl.DataFrame") -> None:
    """Print both values, the difference and its parts for each pair of models and judge."""
    from evalake.cli.output import paragraph

    for (a, b, judge), own in parts.group_by("a", "b", "judge", maintain_order=True):
        first = own.row(0, named=True)
        paragraph("" if judge is None else f"judge {judge}")
        paragraph(f"A {a}: {first['metric']} {first['value_a']:.4g}")
        paragraph(f"B {b}: {first['metric']} {first['value_b']:.4g}")
        paragraph(f"A-B      {first['difference']:+.4f}")
        for row in own.iter_rows(named=True):
            paragraph(f"  {row['part']:<8} {_contribution(row):<24} {row['meaning']}{_samples(row['samples'])}")


def _contribution(row: dict[str, Any]) -> str:
    value, low, high = row["contribution"], row["ci_low"], row["ci_high"]
    return f"{value:+.4f}" + (f" [{low:+.3f} {high:+.3f}]" if low is not None and row["samples"] else "")


def _samples(count: int) -> str:
    return f": {count:,}" if count else ""
