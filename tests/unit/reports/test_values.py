"""Metric values as lines for a terminal: what stands in a line, in which order, and that it fits."""

from typing import Any

import polars as pl
import pytest
from rich.cells import cell_len

from evalake.reports.tables import value_lines


def value(metric: str, number: float | None, **fields: Any) -> dict[str, Any]:
    known = number is not None
    return {
        "model": "a/model", "judge": None, "metric": metric, "tier": 2, "slice": "all", "slice_value": "",
        "value": number, "n": 40, "units": 40, "se": 0.1 if known else None, "reliable": True,
        "ci_low": number - 0.1 if known else None, "ci_high": number + 0.1 if known else None,  # type: ignore[operator]
    } | fields  # fmt: skip


def rows(*values: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(values, schema_overrides={"judge": pl.String, "value": pl.Float64, "units": pl.Int64})


def lines(*values: dict[str, Any], width: int = 100) -> list[str]:
    return [line.strip() for line in "\n".join(value_lines(rows(*values), width)).split("\n")]


@pytest.mark.parametrize(
    ("fields", "numbers"),
    [
        ({"value": None, "ci_low": None, "ci_high": None, "se": None}, ["–", "40", "40"]),
        ({"value": 0.5, "reliable": False}, ["0.500*", "[0.400", "0.600]", "40", "40"]),
        ({"value": 1234.0, "se": None, "ci_low": None, "ci_high": None, "units": None}, ["1,234", "40"]),
        ({"value": 12.34, "ci_low": 10.0, "ci_high": 15.0}, ["12.3", "[10.0", "15.0]", "40", "40"]),
        ({"value": 2.5e8, "ci_low": None, "ci_high": None}, ["2.5e+08", "40", "40"]),
        ({"value": 0.5, "n": 12_000}, ["0.500", "[0.400", "0.600]", "12,000", "40"]),
    ],
)
def test_numbers_have_as_many_decimals_as_their_size_needs(fields: dict[str, Any], numbers: list[str]) -> None:
    assert lines(value("m", 0.5) | fields)[-1].split()[1:] == numbers


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("name", ["m" * 200, "名" * 90, "a\nb\x1b[31m" * 20], ids=("long", "wide", "control"))
def test_no_line_is_wider_than_asked_whatever_the_names_are(width: int, name: str) -> None:
    of_one = (value("short", 0.5, model=name, judge=name), value("short", 0.5, model=name, judge=name, slice="x"))
    of_two = (value("short", 0.5, model=name), value("short", 0.5), value("short", 0.5, slice="x", slice_value=name))
    for given in (of_one, of_two):
        printed = "\n".join(value_lines(rows(*given), width)).split("\n")
        assert all(cell_len(line) <= width for line in printed)
        assert not any("\x1b" in line for line in printed)
