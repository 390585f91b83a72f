"""Places are compared by function names and line numbers, as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalake.suites.solidity_audit.replies import Hits, compare, lines_in, names_function, words_in


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


def test_words_of_a_place_are_its_names_alone() -> None:
    assert words_in("function withdraw at line 7 in Vault.sol") == {"withdraw", "Vault"}
    assert words_in("lines 3 to 9") == set()


@pytest.mark.parametrize(
    ("location", "lines", "hits"),
    [
        ("withdraw", [10], Hits(True, True, 1 / 3)),
        ("line 10", [11, 12], Hits(False, True, 1.0)),
        ("lines 11-14", [], Hits(False, True, 2 / 5)),
        ("withdraw()", [], Hits(True, False, 0.0)),
        ("line 15", [], Hits(False, True, 0.0)),
        ("line 16", [], Hits(False, False, 0.0)),
    ],
)
def test_a_claim_hits_by_name_by_nearness_and_by_overlap(location: str, lines: list[int], hits: Hits) -> None:
    assert compare(location, lines, ["withdraw"], [10, 11, 12]) == hits


def test_where_the_truth_names_no_place_nothing_can_be_hit() -> None:
    assert compare("withdraw, line 7", [8], [], []) == Hits(None, None, None)


@given(st.text(max_size=200), st.lists(st.integers(1, 50), max_size=5), st.lists(st.integers(1, 50), max_size=5))
def test_any_place_is_compared(location: str, lines: list[int], true: list[int]) -> None:
    hits = compare(location, lines, ["withdraw"], true)
    assert (hits.line is None) == (hits.line_iou is None) == (not true)
    assert hits.line_iou is None or 0 <= hits.line_iou <= 1
    assert hits.line or not hits.line_iou, "what overlaps is near"
