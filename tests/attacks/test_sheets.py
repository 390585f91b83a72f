"""Cells that a spreadsheet would run: sheets for labels and exports guard the same ones."""

import csv
import io

import polars as pl
import pytest

from evalake.sdk.sheets import read_sheet, write_sheet
from evalake.storage.sql.query import as_csv

FORMULAS = [
    *(
        f"{before}{sign}1+1"
        for sign in "=+-@＝＋－＠﹢﹣﹦−"
        for before in ("", " ", "\t", "\u00a0", "\u200b", "\x00", "\u3000")
    ),
    "\ufeff=1+1",
    " \t\x1f =HYPERLINK(0)",
    "\r=1",
    "\n=1",
    "\tplain",
    "\rplain",
]
PLAIN = ["", "a=1", "1-2", " text", "a\n=1", "(=1)", "é"]


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_is_text_in_every_sheet(text: str) -> None:
    sheet = write_sheet([{"text": text}], ["text"], "csv")
    export = as_csv(pl.DataFrame({"text": [text]}), spreadsheet_safe=True)
    for written in (sheet, export):
        (cell,) = list(csv.reader(io.StringIO(written, newline="")))[1]
        assert cell == f"'{text}"
    ((_, line),) = read_sheet(sheet, "csv", ["text"])
    assert line == {"text": text}


@pytest.mark.parametrize("text", PLAIN)
def test_any_other_text_is_as_it_is(text: str) -> None:
    export = as_csv(pl.DataFrame({"n": [1], "text": [text]}), spreadsheet_safe=True)
    sheet = write_sheet([{"n": 1, "text": text}], ["n", "text"], "csv")
    for written in (sheet, export):
        assert list(csv.reader(io.StringIO(written, newline="")))[1] == ["1", text]


def test_a_name_of_a_column_is_guarded_too() -> None:
    assert as_csv(pl.DataFrame({" =1+1": [1]}), spreadsheet_safe=True).startswith("' =1+1")
