"""How rows reach the terminal: a table for people, JSON and CSV for machines."""

import json
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from textwrap import fill
from typing import TYPE_CHECKING, Any

import polars as pl
import typer

from evalake.cli.options import Format
from evalake.cli.terminal import say
from evalake.core.configuration import whole_address
from evalake.core.redaction import visible
from evalake.storage.sql.query import as_csv, plain

if TYPE_CHECKING:
    from rich.console import Console, JustifyMethod
    from rich.table import Table

LEAST_LAST = 24  # characters of a listing's last column, before another column is left out for it
LONGEST_CELL = 200  # characters of a cell that has to be on one line
BRIEF_CELL = 40  # of one in a table that leaves columns out
HASH = "^([0-9a-f]{12})[0-9a-f]{20,}$"  # whose beginning names it
HAS_ALL = "--format json has all"
GAP = 2  # between columns
NARROWEST = 60  # what lines are laid out for at least
PLAIN_WIDTH = 160  # of summaries, where the output is not a terminal
PLAIN_TEXT_WIDTH = 80  # of sentences there
WIDEST = 400  # of a table there, whose rows are best left on one line each
MOST_ROWS = 10_000  # of a table: nobody reads more, and laying out millions takes minutes
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
    """Print the rows of frames that are parts of a whole, with one in memory at a time; returns how many.

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
    """Print all that a lake has of something: as a table, a line a row.

    Args:
        what: What it is, in words.
        frame: The rows, with all columns for machines.
        lake: The lake; that it has none of it is said beside the table, for its name may be misspelt.
        style: How the rows are printed.
        columns: The columns of the table. The last one takes what room is left. Where the others do not fit,
            those that do not are left out, and named on standard error.
    """
    if style is not Format.table:
        rows(frame, style)
    elif not frame.is_empty():
        lines(frame.head(MOST_ROWS).select(columns))
        _say_more(frame.height - MOST_ROWS)
    if frame.is_empty():
        say(f"the lake {whole_address(lake)} has no {what}")


def lines(
    frame: pl.DataFrame, least: int | None = LEAST_LAST, *, longest: int = LONGEST_CELL, hint: str = HAS_ALL
) -> None:
    """Print a table of one line a row.

    Columns that do not fit are left out and named.

    Args:
        frame: The rows.
        least: The characters that are kept free for the last column, which is cut; None where it is like the others.
        longest: The characters of the longest cell; longer ones are cut.
        hint: How one sees what was left out.
    """
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    from evalake.reports.wording import one_line

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
    """Print text for people, in which nothing can steer the terminal."""
    typer.echo(visible(text))


def paragraph(text: str) -> None:
    """Print text for people as `line` does, folded between words."""
    from rich.text import Text

    console(PLAIN_TEXT_WIDTH).print(Text(visible(text)))


def width() -> int:
    """Look up how many characters a line may have: the terminal's, or what fits nearly every terminal."""
    return max(console(PLAIN_TEXT_WIDTH).width, NARROWEST)


def as_json(value: Any) -> None:
    """Print a value as JSON; NaN and infinities, which JSON does not have, as null."""
    typer.echo(_harmless(_json(value)))


def _harmless(text: str) -> str:
    """Escape what could steer a terminal, where a person reads the text there; text for machines stays as it is."""
    return visible(text) if sys.stdout.isatty() else text


def _json(value: Any) -> str:
    ascii_only = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    return json.dumps(plain(value), ensure_ascii=ascii_only, indent=None, allow_nan=False)


def table(frame: pl.DataFrame, height: int | None = None, *, whole: bool = False, hint: str = HAS_ALL) -> None:
    """Print a frame as a table that a person can read.

    Where its columns do not fit side by side, a single row has one below the other, and of several rows later columns
    are left out. That, and what is left out of a very long table, is said on standard error.

    Args:
        frame: The rows.
        height: The total number of rows, where these are not all of them.
        whole: Leave no column out: have one below the other.
        hint: How one sees the columns that are left out.
    """
    from rich.console import Console
    from rich.measure import Measurement

    shown = _that_a_person_reads(frame)
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
    _say_more((frame.height if height is None else height) - shown.height)


def _that_a_person_reads(frame: pl.DataFrame) -> pl.DataFrame:
    """Select the first rows, as many as are laid out in seconds, whatever is in them; very long text is cut."""
    frame = frame.head(min(MOST_ROWS, max(1, MOST_CELLS // max(1, frame.width))))
    texts = [name for name, kind in frame.schema.items() if kind == pl.String]
    frame = frame.with_columns(_cut(name) for name in texts)
    lengths = pl.sum_horizontal(pl.lit(0), *(pl.col(name).str.len_chars() for name in texts)).cum_sum()
    return frame.filter((lengths <= MOST_CHARACTERS) | (pl.int_range(pl.len()) == 0))


def _brief(frame: pl.DataFrame) -> pl.DataFrame:
    """Shorten hashes to their beginnings, and mark columns in which nothing is known."""
    texts = [pl.col(name).str.replace(HASH, "$1…") for name, kind in frame.schema.items() if kind == pl.String]
    empty = [name for name in frame.columns if frame[name].null_count() == frame.height]
    return frame.with_columns(texts).with_columns(pl.lit(_cell(None)).alias(name) for name in empty)


def _cut(name: str) -> pl.Expr:
    text = pl.col(name)
    more = text.str.len_chars().cast(pl.Int64) - LONGEST_TEXT
    cut = pl.format("{}… ({} more characters)", text.str.head(LONGEST_TEXT), more)
    return pl.when(more > 0).then(cut).otherwise(text).alias(name)


def _say_more(more: int) -> None:
    if more > 0:
        say(f"… and {more:,} more rows: --format csv or json prints all of them")


def console(plain_width: int = PLAIN_WIDTH) -> "Console":
    """Make a console for people: of that width where the output is not a terminal."""
    from rich.console import Console

    usual = Console()
    return usual if usual.is_terminal else Console(width=plain_width)


def _side_by_side(frame: pl.DataFrame) -> "Table":
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, header_style="bold", pad_edge=False)
    for name, kind in frame.schema.items():
        shown.add_column(Text(visible(name)), justify="right" if kind.is_numeric() else "left", overflow="fold")
    for row in frame.iter_rows():
        shown.add_row(*map(Text, _cells(row)))
    return shown


def _one_below_the_other(frame: pl.DataFrame) -> "Table":
    from rich.table import Table
    from rich.text import Text

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
