"""Prints rows: as a table for people, as JSON or CSV for machines."""

import json
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from textwrap import fill
from typing import Any

import polars as pl
import typer
from rich.cells import cell_len
from rich.console import Console, JustifyMethod
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from evalake.cli.options import Format
from evalake.cli.terminal import say
from evalake.core.configuration import whole_address
from evalake.core.hashing import plain
from evalake.core.redaction import visible

LEAST_LAST = 24  # least characters of a listing's last column
LONGEST_CELL = 200  # characters of a cell on one line
BRIEF_CELL = 40  # of a cell in a table that leaves out columns
HASH = "^([0-9a-f]{12})[0-9a-f]{20,}$"
HAS_ALL = "--format json has all"
GAP = 2  # between columns
NARROWEST = 60  # least width of lines
PLAIN_WIDTH = 160  # of summaries outside a terminal
PLAIN_TEXT_WIDTH = 80  # of sentences outside a terminal
WIDEST = 400  # of a table outside a terminal
MOST_ROWS = 10_000  # of a table: the layout of millions takes minutes
MOST_CELLS = 30_000
MOST_CHARACTERS = 300_000  # in all cells of text
LONGEST_TEXT = 100_000  # of one cell


def rows(frame: pl.DataFrame, style: Format, columns: Sequence[str] | None = None) -> None:
    """Print a frame: all columns for machines, `columns` (or all) as a table."""
    if style is Format.table and columns:
        frame = frame.select(columns)
    stream([frame], style)


def stream(
    frames: Iterable[pl.DataFrame],
    style: Format,
    *,
    spreadsheet_safe: bool = False,
    whole: bool = False,
    hint: str = HAS_ALL,
) -> int:
    """Print the rows of frames, with one frame in memory at a time; returns the number of rows.

    `whole` and `hint` are those of `table`.
    """
    count = 0
    if style is Format.table:
        shown: list[pl.DataFrame] = []
        for frame in frames:
            if count < MOST_ROWS:
                shown.append(frame.head(MOST_ROWS - count))
            count += frame.height
        table(pl.concat(shown), count, whole=whole, hint=hint)
        return count
    from evalake.storage.sql.query import as_csv  # loads what reads a lake

    for number, frame in enumerate(frames):
        if style is Format.csv:
            text = as_csv(frame, spreadsheet_safe=spreadsheet_safe, header=number == 0)
        else:
            texts = [_json(row) for row in frame.iter_rows(named=True)]
            text = ("[" if number == 0 else ", " if texts else "") + ", ".join(texts)
        sys.stdout.write(_harmless(text))
        count += frame.height
    if style is Format.json:
        sys.stdout.write("]\n")
    return count


def listing(what: str, frame: pl.DataFrame, lake: str, style: Format, columns: Sequence[str]) -> None:
    """Print all rows of a kind in a lake, each on one line.

    Args:
        what: The kind, in words.
        frame: The rows, with all columns for machines.
        lake: The lake, which is named where there are no rows, because it may be misspelt.
        style: The format.
        columns: The columns of the table. The last one gets the remaining room. Columns without room are left
            out, and named on standard error.
    """
    if style is not Format.table:
        rows(frame, style)
    elif not frame.is_empty():
        lines(frame.head(MOST_ROWS).select(columns))
        _print_more(frame.height - MOST_ROWS)
    if frame.is_empty():
        say(f"the lake {whole_address(lake)} has no {what}")


def lines(
    frame: pl.DataFrame, least: int | None = LEAST_LAST, *, longest: int = LONGEST_CELL, hint: str = HAS_ALL
) -> None:
    """Print a table of one line a row.

    Columns that do not fit are left out and named.

    Args:
        frame: The rows.
        least: The least characters of the last column, which is cut; None: like the other columns.
        longest: The most characters of a cell.
        hint: The way to see left-out columns.
    """
    from evalake.reports.wording import one_line  # loads what a suite is written with

    texts = {name: [one_line(_cell(value, ", "), longest) for value in frame[name]] for name in frame.columns}
    titles = {name: one_line(name, longest) for name in frame.columns}
    sizes = {name: max(map(cell_len, (titles[name], *texts[name]))) for name in frame.columns}
    filled = [name for name in frame.columns if frame[name].null_count() < frame.height]
    last = filled[-1:] if least is not None and filled[-1:] == frame.columns[-1:] else []
    names = [name for name in filled if name not in last]
    terminal = console(WIDEST)
    room = terminal.width + GAP * (not last) - sum(min(sizes[name], least or 0) for name in last)
    shown = []
    for name in names:
        if sizes[name] + GAP <= room:
            shown.append(name)
            room -= sizes[name] + GAP
    shown = shown or names[: not last]
    grid = Table(box=None, header_style="bold", pad_edge=False, padding=(0, GAP, 0, 0))
    for name in (*shown, *last):
        justify: JustifyMethod = "right" if frame.schema[name].is_numeric() else "left"
        size = min(sizes[name], terminal.width - sum(sizes[other] + GAP for other in shown if name in last))
        grid.add_column(Text(titles[name]), justify=justify, width=size, no_wrap=True, overflow="ellipsis")
    for cells in zip(*(texts[name] for name in (*shown, *last)), strict=True):
        grid.add_row(*map(Text, cells))
    terminal.print(grid)
    if missing := [titles[name] for name in names if name not in shown]:
        typer.echo(fill(f"no room for {', '.join(missing)}; {hint}", terminal.width), err=True)


def line(text: str) -> None:
    """Print text for people, without control characters."""
    typer.echo(visible(text))


def paragraph(text: str, label: Text | None = None) -> None:
    """Print text as `line` does, folded between words, beside a label; no line ends in blanks."""
    terminal = console(PLAIN_TEXT_WIDTH)
    before = label or Text()
    for part in Text(visible(text)).wrap(terminal, terminal.width - len(before)):
        part.rstrip()
        terminal.print(before + part)
        before = Text(" " * len(before))


def width() -> int:
    """Return the width of a line: the terminal's, or PLAIN_TEXT_WIDTH."""
    return max(console(PLAIN_TEXT_WIDTH).width, NARROWEST)


def as_json(value: Any) -> None:
    """Print a value as JSON, with NaN and infinities as null."""
    typer.echo(_harmless(_json(value)))


def json_or_line(value: Any, text: str, *, as_json: bool) -> None:
    """Print a value as JSON, or for people a line of text."""
    typer.echo(_harmless(_json(value)) if as_json else visible(text))


def _harmless(text: str) -> str:
    """Escape control characters on a terminal only."""
    return visible(text) if sys.stdout.isatty() else text


def _json(value: Any) -> str:
    ascii_only = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    return json.dumps(plain(value), ensure_ascii=ascii_only, indent=None, allow_nan=False)


def table(frame: pl.DataFrame, height: int | None = None, *, whole: bool = False, hint: str = HAS_ALL) -> None:
    """Print a frame as a table for people.

    Where the columns do not fit, a single row is printed with one column a line, and several rows without the last
    columns. Standard error names left-out columns and rows.

    Args:
        frame: The rows.
        height: The total number of rows, if there are more.
        whole: Print all columns, one a line where they do not fit.
        hint: The way to see left-out columns.
    """
    shown = _first_rows(frame)
    side_by_side = _side_by_side(shown)
    usual = Console()
    needed = Measurement.get(usual, usual.options.update_width(sys.maxsize), side_by_side)
    terminal = console(min(max(needed.maximum, PLAIN_WIDTH), WIDEST))
    if needed.minimum <= terminal.width:
        terminal.print(side_by_side)
    elif whole or shown.height == 1:
        terminal.print(_one_below_the_other(shown))
    else:
        lines(_brief(shown), None, longest=BRIEF_CELL, hint=hint)
    _print_more((frame.height if height is None else height) - shown.height)


def _first_rows(frame: pl.DataFrame) -> pl.DataFrame:
    """Select the first rows, up to a layout of seconds, and cut long texts."""
    frame = frame.head(min(MOST_ROWS, max(1, MOST_CELLS // max(1, frame.width))))
    texts = [name for name, kind in frame.schema.items() if kind == pl.String]
    frame = frame.with_columns(_cut(name) for name in texts)
    lengths = pl.sum_horizontal(pl.lit(0), *(pl.col(name).str.len_chars() for name in texts)).cum_sum()
    return frame.filter((lengths <= MOST_CHARACTERS) | (pl.int_range(pl.len()) == 0))


def _brief(frame: pl.DataFrame) -> pl.DataFrame:
    """Shorten hashes, and mark columns without values."""
    texts = [pl.col(name).str.replace(HASH, "$1…") for name, kind in frame.schema.items() if kind == pl.String]
    empty = [name for name in frame.columns if frame[name].null_count() == frame.height]
    return frame.with_columns(texts).with_columns(pl.lit(_cell(None)).alias(name) for name in empty)


def _cut(name: str) -> pl.Expr:
    text = pl.col(name)
    more = text.str.len_chars().cast(pl.Int64) - LONGEST_TEXT
    cut = pl.format("{}… ({} more characters)", text.str.head(LONGEST_TEXT), more)
    return pl.when(more > 0).then(cut).otherwise(text).alias(name)


def _print_more(more: int) -> None:
    if more > 0:
        say(f"… and {more:,} more rows: --format csv or json prints all of them")


def console(plain_width: int = PLAIN_WIDTH) -> Console:
    """Create a console, of that width outside a terminal."""
    usual = Console()
    return usual if usual.is_terminal else Console(width=plain_width)


def _side_by_side(frame: pl.DataFrame) -> Table:
    shown = Table(box=None, header_style="bold", pad_edge=False)
    for name, kind in frame.schema.items():
        shown.add_column(Text(visible(name)), justify="right" if kind.is_numeric() else "left", overflow="fold")
    for row in frame.iter_rows():
        shown.add_row(*map(Text, _cells(row)))
    return shown


def _one_below_the_other(frame: pl.DataFrame) -> Table:
    shown = Table(box=None, show_header=False, pad_edge=False)
    shown.add_column(style="bold", no_wrap=True)
    shown.add_column(overflow="fold")
    for number, row in enumerate(frame.iter_rows()):
        if number:
            shown.add_row()
        for name, cell in zip(frame.columns, _cells(row), strict=True):
            shown.add_row(Text(visible(name)), Text(cell))
    return shown


def _cells(row: Sequence[Any]) -> Iterable[str]:
    return (visible(_cell(value)) for value in row)


def _cell(value: Any, between: str = "\n") -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1e6 else f"{value:.0f}"
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S")
    if isinstance(value, list | pl.Series):
        return between.join(map(str, value))
    return str(value)
