"""Rows for machines: as values of JSON, as CSV, as Parquet; frames come one after the other, however many there are."""

import json
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import IO, Any

import polars as pl

from core.spreadsheets import FORMULA, is_formula


def as_csv(frame: pl.DataFrame, *, spreadsheet_safe: bool = False, header: bool = True) -> str:
    """Format a frame as CSV; for a spreadsheet with `'` before every text that would be a formula there."""
    flat = _flat(frame)
    if spreadsheet_safe:
        texts = pl.col(pl.String)
        safe = pl.when(texts.str.contains(FORMULA)).then("'" + texts).otherwise(texts)
        flat = flat.with_columns(safe.name.keep())
        flat = flat.rename({name: f"'{name}" for name in flat.columns if is_formula(name)})
    return flat.write_csv(include_header=header)


def write_csv(frames: Iterable[pl.DataFrame], file: IO[bytes], *, spreadsheet_safe: bool = False) -> None:
    """Write frames as one table of CSV in UTF-8."""
    for number, frame in enumerate(frames):
        file.write(as_csv(frame, spreadsheet_safe=spreadsheet_safe, header=number == 0).encode())


def write_parquet(frames: Iterable[pl.DataFrame], file: Path | IO[bytes]) -> int:
    """Write frames as one table of Parquet; returns the number of rows."""
    from pyarrow.parquet import ParquetWriter

    parts = (frame.to_arrow() for frame in frames)
    first = next(parts)
    count = 0
    with ParquetWriter(file, first.schema) as writer:
        for table in chain([first], parts):
            writer.write_table(table)
            count += table.num_rows
    return count


def plain(value: Any) -> Any:
    """Convert a value to what JSON can hold; NaN and infinities, which it does not have, become None."""
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, float):
        return value if value - value == 0 else None
    if value is None or isinstance(value, str | int | bool):
        return value
    if isinstance(value, bytes):
        return value.hex()
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def as_text(value: Any) -> str:
    """Format bytes as hexadecimal digits, any other value as JSON."""
    return value.hex() if isinstance(value, bytes) else json.dumps(plain(value), ensure_ascii=False)


def _flat(frame: pl.DataFrame) -> pl.DataFrame:
    """Convert a frame to what CSV can hold: lists and structures as JSON, bytes as hexadecimal digits."""
    texts = [
        pl.Series(name, [None if value is None else as_text(value) for value in frame[name].to_list()], pl.String)
        for name, kind in frame.schema.items()
        if kind.is_nested() or kind == pl.Binary
    ]
    return frame.with_columns(texts)
