"""Sheets that people fill in: their lines as text, in CSV or JSON Lines, and back."""

import csv
import io
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from core.errors import SourceError
from core.spreadsheets import is_formula

SheetFormat = Literal["csv", "jsonl"]
Line = Mapping[str, Any]
NumberedLine = tuple[int, Line | str]
"""A line with its number; in place of one that cannot be read, what is wrong with it."""


def write_sheet(lines: Iterable[Line], columns: Sequence[str], form: SheetFormat) -> str:
    """Write a sheet. In CSV, a text that a spreadsheet would take for a formula is kept from being one by a `'`."""
    if form == "jsonl":
        return "".join(json.dumps(dict(line), ensure_ascii=False) + "\n" for line in lines)
    out = io.StringIO()
    writer = csv.DictWriter(out, columns)  # ends lines with CR LF, so that it quotes a cell that holds either
    writer.writeheader()
    writer.writerows({name: _as_text(line[name]) for name in columns} for line in lines)
    return out.getvalue()


def read_sheet(text: str, form: SheetFormat, needed: Collection[str]) -> Iterator[NumberedLine]:
    """Read the lines of a sheet.

    Args:
        text: The sheet.
        form: How it is written.
        needed: The columns without which a CSV file is no such sheet.

    Yields:
        The lines that are not empty.

    Raises:
        SourceError: The text is no sheet at all.
    """
    if form == "jsonl":
        for number, raw in enumerate(text.split("\n"), start=1):  # no other line end is one in JSON Lines
            if raw.strip():
                yield number, _json_line(raw)
        return
    reader = csv.reader(io.StringIO(text.removeprefix("\ufeff")), strict=True)
    try:
        header = next(reader, [])
        if missing := {*needed} - {*header}:
            raise SourceError(f"this is no sheet of labels: it has no column {min(missing)}")
        for cells in reader:
            if cells:
                line = {name: cell.removeprefix("'") for name, cell in zip(header, cells, strict=False)}
                yield reader.line_num, line if len(cells) == len(header) else "it has more or fewer cells than columns"
    except csv.Error as error:
        raise SourceError(f"the sheet cannot be read as CSV in line {reader.line_num}: {error}") from error


def _as_text(value: Any) -> Any:
    """Write a cell that no spreadsheet runs: text that begins like a formula, or with `'` itself, gets a `'`."""
    if isinstance(value, str) and (value.startswith("'") or is_formula(value)):
        return f"'{value}"
    return value


def _json_line(raw: str) -> Line | str:
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return "it is not JSON"
    return value if isinstance(value, dict) else "it is not a JSON object"
