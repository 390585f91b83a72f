"""Patterns that contracts accept mean the same to Polars and to Python; all others are refused."""

import re
import sys
import unicodedata

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.errors import ContractError
from contracts.patterns import WHITE_SPACE, require_portable, whole

PORTABLE = [
    "",
    "[0-9a-f]{64}",
    "a|b",
    "(?:a|b)+c?",
    r"\.x\\",
    "[^a-z]",
    "a.b",
    "[a-z_.]",
    r"[a\-b\]]",
    "é+",
    "x{2,}",
    "x{1,3}?",
    r"[ \t\n]*",
    "a b#c",
    "-&~",
    "(a)(b)",
    ".*",
]
DIFFERENT = [
    *("a$", "^a", r"\d", r"\w", r"\s", r"\b", r"\Aa", r"a\Z", r"a\z", r"\1(a)", r"\u0041", r"\x41", r"\pL"),
    *("(?i)a", "(?=a)", "(?!a)", "(?<=a)", "(?P<x>a)", "(?#a)", "(?>a)", "a++", "a**", "a{,3}", "a{1000}"),
    *("[[a]b]", "[a&&b]", "[a--b]", "[a~~b]", "[a||b]", "[[:alpha:]]", "a{", "}"),
]
NO_EXPRESSION = ["(", ")", "[", "[z-a]", "*a", "a{3,2}", "(a", "a\\"]


@pytest.mark.parametrize("pattern", [*DIFFERENT, *NO_EXPRESSION])
def test_what_engines_read_differently_or_not_at_all_is_refused(pattern: str) -> None:
    with pytest.raises(ContractError, match=r"^the pattern .* (engines read differently|is not a regular expression)"):
        require_portable(pattern)


@given(
    st.sampled_from(PORTABLE), st.lists(st.text(alphabet="ab-x.é\n\r\t 0f\u2028\U0001f600", max_size=4), max_size=30)
)
@settings(deadline=None)
def test_polars_and_python_agree_on_what_is_accepted(pattern: str, texts: list[str]) -> None:
    require_portable(pattern)
    by_polars = pl.Series(texts, dtype=pl.String).str.contains(whole(pattern)).to_list()
    assert by_polars == [re.fullmatch(pattern, text) is not None for text in texts]


def test_a_long_pattern_is_judged_at_once() -> None:
    require_portable("(?:[a-z]{2}|b)*" * 2000)
    with pytest.raises(ContractError):
        require_portable("a" * 100_000 + "$")


def test_white_space_is_what_unicode_calls_white_space() -> None:
    def is_white_space(character: str) -> bool:
        # The property's definition: the separators, and the controls that move to another place or line.
        return unicodedata.category(character) in ("Zs", "Zl", "Zp") or character in "\t\n\v\f\r\x85"

    assert set(WHITE_SPACE) == {chr(code) for code in range(sys.maxunicode + 1) if is_white_space(chr(code))}
