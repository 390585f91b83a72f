"""`evalake compare`: compares two models, runs, prompt types or snapshots, paired by clusters of samples."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evalake.cli.configuration import command
from evalake.cli.options import (
    LAKE,
    CorrectedOption,
    Format,
    LakeOption,
    NewestTaggedOption,
    RowsAsJsonOption,
    StyleOption,
    style_of,
)
from evalake.cli.terminal import say, write_text
from evalake.core.errors import UsageError

if TYPE_CHECKING:
    from evalake.decisions.compare import Comparison

GAP = 2
LONGEST_NAME = 76
HEADINGS = ("A", "B", "A-B", "p", "units", "flips")


def compare(
    a: Annotated[
        str, typer.Argument(help="A model, a run, a snapshot, RUN:MODEL or RUN:MODEL:PROMPT_TYPE.", metavar="A")
    ],
    b: Annotated[str, typer.Argument(help="The other side, in the same form.", metavar="B")],
    metric: Annotated[
        str | None, typer.Option("--metric", help="Only this metric, in all of its slices.", metavar="NAME")
    ] = None,
    run: Annotated[
        str | None,
        typer.Option("--run", help="The run of the models; default: the newest with them.", metavar="ID"),
    ] = None,
    tag: NewestTaggedOption = None,
    lake: LakeOption = LAKE,
    style: StyleOption = Format.table,
    json: RowsAsJsonOption = False,
    force: Annotated[
        bool, typer.Option("--force", help="Compare results that are not comparable, and print why they are not.")
    ] = False,
    corrected: CorrectedOption = False,
    markdown: Annotated[
        Path | None, typer.Option("--markdown", help="Write Markdown there, for a pull request.", metavar="FILE")
    ] = None,
) -> None:
    """Compare A with B: A - B in every metric, with interval, p values, and flipped answers."""
    from evalake.cli import output as show
    from evalake.decisions.compare import compare_sides
    from evalake.reports.compared import markdown_of
    from evalake.storage.lake import Lake

    style = style_of(style, as_json=json)
    if run and tag:
        raise UsageError("give --run or --tag, not both")

    compared = compare_sides(Lake(lake), a, b, run_id=run, tag=tag, metric=metric, force=force, corrected=corrected)
    if markdown is not None:
        write_text(markdown, markdown_of(compared.rows, compared.remarks))
    for remark in compared.remarks:
        say(remark)
    if style is Format.table:
        _print(compared)
        # The slices of a headline metric, or of another metric
        sliced = compared.headline[:2][-1] if metric is None else None
        again = command("compare", a, b, metric=sliced, lake=lake, run=run, tag=tag)
        typer.echo(f"{'in slices' if sliced else 'all metrics'}: {again}")
    else:
        show.rows(compared.rows, style)


def _print(compared: "Comparison") -> None:
    """Print a table for each pair of models and judge."""
    from evalake.cli import output as show
    from evalake.reports.wording import lacking

    for (a, b, judge), rows in compared.rows.group_by("a", "b", "judge", maintain_order=True):
        judged = "" if judge is None else f"\njudge {judge}"
        first, other = (lacking(rows.select(name).max().item()) for name in ("missing_a", "missing_b"))
        show.paragraph(f"A {a}{first}\nB {b}{other}{judged}")
        typer.echo()
        for line in _lines(rows.to_dicts(), show.console(show.PLAIN_TEXT_WIDTH).width):
            typer.echo(line)
        typer.echo()
    typer.echo("A-B: difference and 95 % interval. p: adjusted by Holm for all rows.")
    typer.echo("flips: units that A answers better : units that B does.")


def _lines(rows: Sequence[dict[str, Any]], width: int) -> Iterator[str]:
    """Write a line for each metric and slice; the numbers after a long name are on the next line."""
    from rich.cells import cell_len, set_cell_size

    cells = [HEADINGS, *map(_cells, rows)]
    sizes = [max(map(len, column)) for column in zip(*cells, strict=True)]
    heading, *numbers = (_aligned(each, sizes) for each in cells)
    names = [_name(row) for row in rows]
    room = max(0, min(max(map(cell_len, names)), width - len(heading)))
    yield f"{'metric':<{room}}{heading}"
    last = None
    for row, name, behind in zip(rows, names, numbers, strict=True):
        if row["slice"] != "all" and row["metric"] != last:
            yield row["metric"]
        last = row["metric"]
        if cell_len(name) > room:
            yield name
            name = ""
        yield f"{set_cell_size(name, room)}{behind}"


def _aligned(cells: Sequence[str], sizes: Sequence[int]) -> str:
    return "".join(f"{cell:>{GAP + size}}" for cell, size in zip(cells, sizes, strict=True))


def _name(row: dict[str, Any]) -> str:
    from evalake.reports.wording import one_line

    return one_line(row["metric"] if row["slice"] == "all" else f"  {row['slice']} {row['slice_value']}", LONGEST_NAME)


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    flips = "–" if row["flips_to_a"] is None else f"{row['flips_to_a']}:{row['flips_to_b']}"
    values = (_number(row["value_a"]), _number(row["value_b"]), _difference(row), _p(row["p_holm"]))
    return (*values, str(row["units"]), flips)


def _difference(row: dict[str, Any]) -> str:
    if row["ci_low"] is None or row["ci_high"] is None:
        return _number(row["difference"], sign="+")
    ends = (_number(row[name], sign="+") for name in ("ci_low", "ci_high"))
    return f"{_number(row['difference'], sign='+')} [{' '.join(ends)}]"


def _number(value: float | None, sign: str = "") -> str:
    if value is None:
        return "–"
    return f"{value:{sign}.3f}" if abs(value) < 10 else f"{value:{sign}.4g}"


def _p(value: float | None) -> str:
    return "–" if value is None else "<.001" if value < 0.001 else f"{value:.3f}"
