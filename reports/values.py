"""Metric values as lines for a terminal: a block for each metric and slice, headline metrics first."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl
from rich.cells import cell_len, set_cell_size

from reports.report import Subject
from reports.wording import UNKNOWN, UNRELIABLE, one_line, short_names

GAP = 2
COLUMNS = {"value": 9, "95 % interval": 17, "n": 7, "units": 7}
"""The headings of the numbers behind a name, and how wide they are."""

NUMBERS = sum(COLUMNS.values()) + GAP * len(COLUMNS)


def headline_first(values: pl.DataFrame, headline: Sequence[str]) -> pl.DataFrame:
    """Order rows of `metric_snapshots` by the headline, then by tier and name; slices behind the whole."""
    place = {name: number for number, name in enumerate(headline)}
    order = pl.col("metric").replace_strict(place, default=len(place), return_dtype=pl.Int64)
    sliced = pl.col("slice") != "all"
    return values.sort(order, "tier", "metric", sliced, "slice", "slice_value", nulls_last=True, maintain_order=True)


def value_lines(values: pl.DataFrame, width: int) -> Iterator[str]:
    """Write rows of `metric_snapshots` as lines of at most `width` cells, in their order.

    There is a line for each model and judge. Where all rows are of one of them, it is named once.
    """
    if values.is_empty():
        return
    judges = values["judge"].unique()
    if judges.len() == 1 and judges[0] is not None:
        yield _cut(f"judge {judges[0]}", width)
        values = values.with_columns(judge=pl.lit(None, pl.String))
    subjects = [Subject(*row).name for row in values.select("model", "judge").unique().iter_rows()]
    alone = len(subjects) == 1
    if alone:
        yield _cut(f"model {subjects[0]}", width)
    names = [*values["slice_value"].unique(), *(values["metric"].unique() if alone else subjects)]
    room = min(max(map(cell_len, names)) + 4, width - NUMBERS)
    yield ""
    yield " " * room + "".join(f"{heading:>{GAP + size}}" for heading, size in COLUMNS.items())
    for (metric, slice_), rows in values.group_by("metric", "slice", maintain_order=True):
        if slice_ == "all":
            yield from _block(str(metric), "  ", rows, room, width, alone=alone)
            continue
        yield f"{metric} by {slice_}"
        for (part,), of_part in rows.group_by("slice_value", maintain_order=True):
            yield from _block(_cut(f"  {part}", width), "    ", of_part, room, width, alone=alone)


def _block(heading: str, indent: str, rows: pl.DataFrame, room: int, width: int, *, alone: bool) -> Iterator[str]:
    """Write rows under a heading, each with its model and judge; behind the heading where all are of one of them."""
    if not alone:
        yield heading
    for row in rows.iter_rows(named=True):
        yield _line(heading if alone else f"{indent}{Subject(row['model'], row['judge']).name}", row, room, width)


def _line(name: str, row: Mapping[str, Any], room: int, width: int) -> str:
    """Write a name with the numbers behind it, or below it where it is longer than there is room."""
    shown = _cut(name, width)
    if cell_len(shown) > room:
        return f"{shown}\n{'':<{room}}{_numbers(row)}"
    return f"{set_cell_size(shown, room)}{_numbers(row)}"


def _cut(text: str, width: int) -> str:
    bare = text.lstrip(" ")
    indent = len(text) - len(bare)
    return " " * indent + short_names([one_line(bare, 300)], width - indent)[0]


def _numbers(row: Mapping[str, Any]) -> str:
    value = _number(row["value"], row["value"], whole=row["se"] is None)
    value += " " if row["value"] is None or row["reliable"] else UNRELIABLE
    known = row["ci_low"] is not None and row["ci_high"] is not None
    interval = f"[{_number(row['ci_low'], row['value'])} {_number(row['ci_high'], row['value'])}]" if known else ""
    units = "" if row["units"] is None else f"{row['units']:,}"
    cells = zip((value, interval, f"{row['n']:,}", units), COLUMNS.values(), strict=True)
    return "".join(f"{cell:>{GAP + size}}" for cell, size in cells).rstrip()


def _number(value: float | None, like: float | None, *, whole: bool = False) -> str:
    """Write a number with as many decimals as one of the size of `like` has, or none where `whole`."""
    if value is None or value - value != 0:
        return UNKNOWN
    if whole and value == round(value):
        return f"{value:,.0f}"
    size = abs(value if like is None else like)
    if size >= 1e7:
        return f"{value:.3g}"
    return f"{value:,.{3 if size < 10 else 1 if size < 1e4 and size != round(size) else 0}f}"
