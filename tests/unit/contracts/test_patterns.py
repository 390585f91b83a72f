"""Patterns mean the same to Polars and to Python, and white space is what Unicode calls so."""

import re
import sys
import unicodedata

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalake.contracts.rule import WHITE_SPACE, Kind, Rule, whole
from evalake.contracts.tables.metrics import DAY_IS_DATE
from evalake.core.errors import ContractError

PATTERNS = ["[0-9a-f]{64}", DAY_IS_DATE.parameters["pattern"], "a|b", "(?:a|b)+c?", "[^a-z]", "a.b", "é+", ".*"]


@pytest.mark.parametrize("pattern", ["(", "[z-a]", "*a", "a{3,2}", "a\\"])
def test_what_is_no_expression_is_refused_when_the_rule_is_made(pattern: str) -> None:
    with pytest.raises(ContractError, match=r"^the pattern .* is not a regular expression"):
        Rule("no_pattern", "column", Kind.MATCHES, {"pattern": pattern})


@given(
    st.sampled_from(PATTERNS), st.lists(st.text(alphabet="ab-x.é\n\r\t 0f\u2028\U0001f600", max_size=4), max_size=30)
)
def test_polars_and_python_agree(pattern: str, texts: list[str]) -> None:
    by_polars = pl.Series(texts, dtype=pl.String).str.contains(whole(pattern)).to_list()
    assert by_polars == [re.fullmatch(pattern, text) is not None for text in texts]


def test_white_space_is_what_unicode_calls_white_space() -> None:
    def is_white_space(character: str) -> bool:
        # The property's definition: the separators, and the controls that move to another place or line.
        return unicodedata.category(character) in ("Zs", "Zl", "Zp") or character in "\t\n\v\f\r\x85"

    assert set(WHITE_SPACE) == {chr(code) for code in range(sys.maxunicode + 1) if is_white_space(chr(code))}
