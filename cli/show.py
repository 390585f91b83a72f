"""How rows reach the terminal: a table for people, JSON and CSV for machines."""

import json
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import polars as pl
import typer

from cli.options import Format
from cli.terminal import harmless

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

PLAIN_WIDTH = 160  # of summaries, where the output is not a terminal
WIDEST = 400  # of a table there, whose rows are best left on one line each
MOST_ROWS = 10_000  # of a table: nobody reads more, and laying out millions takes minutes


def rows(frame: pl.DataFrame, style: Format, columns: Sequence[str] | None = None) -> None:
    """Print a frame: all columns for machines, `columns` (or all) as a table."""
    if style is Format.json:
        as_json(frame.to_dicts())
    elif style is Format.csv:
        sys.stdout.write(_flat(frame).write_csv())
    else:
        table(frame.select(columns) if columns else frame)


def as_json(value: Any) -> None:
    """Print a value as JSON; NaN and infinities, which JSON does not have, as null."""
    ascii_only = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    typer.echo(json.dumps(_plain(value), ensure_ascii=ascii_only, indent=None, allow_nan=False))


def table(frame: pl.DataFrame) -> None:
    """Print a frame as a table that a person can read: one column below the other where they do not fit side by side.

    What is left out of a very long one is said on standard error.
    """
    from rich.console import Console
    from rich.measure import Measurement

    shown = frame.head(MOST_ROWS)
    side_by_side = _side_by_side(shown)
    console = Console()
    needed = Measurement.get(console, console.options.update_width(sys.maxsize), side_by_side)
    if not console.is_terminal:
        console = Console(width=min(max(needed.maximum, PLAIN_WIDTH), WIDEST))
    console.print(side_by_side if needed.minimum <= console.width else _one_below_the_other(shown))
    if more := frame.height - shown.height:
        typer.echo(f"… and {more:,} more rows: --format csv or json prints all of them", err=True)


def console() -> "Console":
    """A console for people: wide where the output is not a terminal."""
    from rich.console import Console

    usual = Console()
    return usual if usual.is_terminal else Console(width=PLAIN_WIDTH)


def _side_by_side(frame: pl.DataFrame) -> "Table":
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, header_style="bold", pad_edge=False)
    for name, kind in frame.schema.items():
        shown.add_column(Text(harmless(name)), justify="right" if kind.is_numeric() else "left", overflow="fold")
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
            shown.add_row(Text(harmless(name)), Text(cell))
    return shown


def _cells(row: Sequence[Any]) -> Iterable[str]:
    return (harmless(_cell(value)) for value in row)


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1e6 else f"{value:.0f}"
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S")
    if isinstance(value, list):
        return "\n".join(map(str, value))
    return str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, float):
        return value if value - value == 0 else None
    if value is None or isinstance(value, str | int | bool):
        return value
    if isinstance(value, bytes):
        return value.hex()
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _flat(frame: pl.DataFrame) -> pl.DataFrame:
    """A frame as CSV can hold it: lists and structures as JSON, bytes as hexadecimal digits."""
    texts = [
        pl.Series(name, [None if value is None else _as_text(value) for value in frame[name].to_list()], pl.String)
        for name, kind in frame.schema.items()
        if kind.is_nested() or kind == pl.Binary
    ]
    return frame.with_columns(texts)


def _as_text(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else json.dumps(_plain(value), ensure_ascii=False)
