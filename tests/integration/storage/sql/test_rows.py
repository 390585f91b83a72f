"""Rows for machines: every kind of value in JSON, CSV and Parquet, and frames as parts of one table."""

from datetime import UTC, date, datetime
from decimal import Decimal
from io import BytesIO

import polars as pl
import pytest

from evalake.storage.sql.query import as_csv, plain, write_csv, write_parquet

PARTS = [pl.DataFrame({"n": [1, 2], "words": [["a"], None]}), pl.DataFrame({"n": [3], "words": [["b", "ü"]]})]


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (float("nan"), None),
        (float("-inf"), None),
        (True, True),
        (b"\x00\xff", "00ff"),
        (Decimal("1.50"), "1.50"),
        (date(2026, 1, 2), "2026-01-02"),
        ({"a": [datetime(2026, 1, 2, tzinfo=UTC)]}, {"a": ["2026-01-02T00:00:00+00:00"]}),
    ],
)
def test_a_value_is_one_that_json_has(value: object, told: object) -> None:
    assert plain(value) == told


def test_parts_are_one_table_of_csv_with_one_line_of_names() -> None:
    file = BytesIO()
    write_csv(PARTS, file)

    assert file.getvalue().decode().splitlines() == ["n,words", '1,"[""a""]"', "2,", '3,"[""b"", ""ü""]"']


def test_parts_are_one_table_of_parquet() -> None:
    file = BytesIO()

    assert write_parquet(PARTS, file) == 3
    file.seek(0)
    assert pl.read_parquet(file).to_dicts() == pl.concat(PARTS).to_dicts()


def test_no_cell_and_no_name_is_a_formula_where_a_spreadsheet_reads_it() -> None:
    frame = pl.DataFrame({"=name": ["=1+1", " @x", "plain", None]})

    assert as_csv(frame, spreadsheet_safe=True).splitlines() == ["'=name", "'=1+1", "' @x", "plain", ""]
    assert as_csv(frame).splitlines()[1] == "=1+1"
