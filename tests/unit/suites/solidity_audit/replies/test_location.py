"""Places are compared by function names and line numbers, as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalake.suites.solidity_audit.replies import compare, lines_in, names_function


@pytest.mark.parametrize(
    ("location", "lines"),
    [
        ("lines 12-15", {12, 13, 14, 15}),
        ("L40", {40}),
        ("Vault.sol:7", {7}),
        ("#L12-L14", {12, 13, 14}),
        ("line 3 and 9", {3, 9}),
        ("LINE 4", {4}),
        ("lines 3 – 5, 8", {3, 4, 5, 8}),
        ("withdraw(), line 8; deposit(), lines 20 to 21", {8, 20, 21}),
        ("line 5-3", set()),
        ("lines 1-9999", set()),
        ("line 0", set()),
        ("at 12", set()),
        ("pragma 0.8.20", set()),
        ("", set()),
    ],
)
def test_lines_are_read_where_a_word_or_mark_introduces_them(location: str, lines: set[int]) -> None:
    assert lines_in(location) == lines


@pytest.mark.parametrize(
    ("location", "function", "named"),
    [
        ("Vault.withdraw(uint256)", "withdraw", True),
        ("withdraw", "Vault.withdraw(uint256)", True),
        ("in function withdraw, line 7", "function withdraw(uint256)", True),
        ("the constructor", "constructor", True),
        ("withdrawAll", "withdraw", False),
        ("_withdraw", "withdraw", False),
        ("Withdraw", "withdraw", False),
        ("", "withdraw", False),
    ],
)
def test_a_function_is_named_by_a_word_of_its_own(location: str, function: str, named: bool) -> None:
    assert names_function(location, ["other", function]) is named


@given(st.text(max_size=200), st.lists(st.integers(1, 50), max_size=5), st.lists(st.integers(1, 50), max_size=5))
def test_any_place_is_compared(location: str, lines: list[int], true: list[int]) -> None:
    hits = compare(location, lines, ["withdraw"], true)
    assert (hits.line is None) == (hits.line_iou is None) == (not true)
    assert hits.line_iou is None or 0 <= hits.line_iou <= 1
    assert hits.line or not hits.line_iou, "what overlaps is near"
