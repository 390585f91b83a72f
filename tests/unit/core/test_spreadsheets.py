"""What a spreadsheet may take for a formula; tests/attacks/test_sheets.py has the sheets."""

import re

import polars as pl
import pytest

from evalake.core.redaction import FORMULA, is_formula


@pytest.mark.parametrize(("text", "is_one"), [("=1", True), ("  ＝1", True), ("\t", True), ("1=1", False), ("", False)])
def test_python_and_polars_read_the_pattern_alike(text: str, is_one: bool) -> None:
    assert is_formula(text) is is_one
    assert pl.Series([text]).str.contains(FORMULA).item() is is_one


def test_every_character_is_told_alike_before_a_sign() -> None:
    texts = [f"{chr(code)}=1" for code in range(0x2100) if not re.match(r"[\ud800-\udfff]", chr(code))]
    assert pl.Series(texts).str.contains(FORMULA).to_list() == [is_formula(text) for text in texts]
