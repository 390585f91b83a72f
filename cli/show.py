"""How rows reach the terminal: a table for people, JSON and CSV for machines."""

import json
import sys
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import polars as pl
import typer

from cli.options import Format

PLAIN_WIDTH = 160  # where the output is not a terminal, tables may be this wide


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
    typer.echo(json.dumps(_plain(value), ensure_ascii=False, indent=None, allow_nan=False))


def table(frame: pl.DataFrame) -> None:
    """Print a frame as a table that a person can read."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    if not console.is_terminal:
        console = Console(width=PLAIN_WIDTH)
    shown = Table(box=None, header_style="bold", pad_edge=False)
    for name, kind in frame.schema.items():
        shown.add_column(name, justify="right" if kind.is_numeric() else "left", overflow="fold")
    for row in frame.iter_rows():
        shown.add_row(*(Text(_cell(value)) for value in row))
    console.print(shown)


def console() -> Any:
    """A console for people: wide where the output is not a terminal."""
    from rich.console import Console

    usual = Console()
    return usual if usual.is_terminal else Console(width=PLAIN_WIDTH)


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
    if isinstance(value, list | tuple | pl.Series):
        return [_plain(inner) for inner in value]
    if isinstance(value, float):
        return value if value - value == 0 else None
    if value is None or isinstance(value, str | int | bool):
        return value
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _flat(frame: pl.DataFrame) -> pl.DataFrame:
    """A frame whose lists are JSON, because CSV has no lists."""
    nested = [name for name, kind in frame.schema.items() if kind.is_nested()]
    dumps = [
        pl.col(name).map_elements(lambda v: json.dumps(_plain(v), ensure_ascii=False), return_dtype=pl.String)
        for name in nested
    ]
    return frame.with_columns(dumps)
