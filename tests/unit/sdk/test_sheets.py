"""Sheets go out and come back whole, run nothing in a spreadsheet, and tell what cannot be read."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalake.core.errors import SourceError
from evalake.sdk.sheets import SheetFormat, read_sheet, write_sheet

NO_SURROGATES = st.characters(exclude_categories=["Cs"], exclude_characters="\x00")
CELLS = st.text(alphabet=NO_SURROGATES, min_size=1, max_size=12)
TRICKY = st.text(alphabet="=+-@'\",;\t\r\n \u2028a", min_size=1, max_size=6)


@pytest.mark.parametrize("form", ["csv", "jsonl"])
@given(st.lists(st.tuples(CELLS | TRICKY, CELLS | TRICKY), min_size=1, max_size=5))
def test_what_is_written_is_read_again(form: SheetFormat, cells: list[tuple[str, str]]) -> None:
    lines = [{"first": first, "second": second} for first, second in cells]
    read = list(read_sheet(write_sheet(lines, ("first", "second"), form), form, ("first",)))
    assert [line for _, line in read] == lines


def test_lines_have_their_numbers_and_one_that_cannot_be_read_says_why() -> None:
    table = list(read_sheet('\ufeffa,b\n1,2\n\n3\n"4\n",5\n', "csv", ("a",)))
    assert table == [
        (2, {"a": "1", "b": "2"}),
        (4, "it has more or fewer cells than columns"),
        (6, {"a": "4\n", "b": "5"}),
    ]
    lines = list(read_sheet('{"a": 1}\n\nnonsense\n[1]\n' + "[" * 100_000, "jsonl", ()))
    told: list[tuple[int, Any]] = [
        (1, {"a": 1}), (3, "it is not JSON"), (4, "it is not a JSON object"), (5, "it is not JSON")
    ]  # fmt: skip
    assert lines == told


def test_a_table_that_breaks_off_is_named_by_its_line() -> None:
    with pytest.raises(SourceError, match="cannot be read as CSV in line 2"):
        list(read_sheet('a,b\n"1"x,2\n', "csv", ("a",)))
