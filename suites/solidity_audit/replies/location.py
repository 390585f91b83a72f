"""Where an audit places a vulnerability, against where it is: by function names and by line numbers."""

import re
from collections.abc import Collection
from dataclasses import dataclass

NEAR = 3  # lines: a claim this close points at the place
WIDEST_RANGE = 2_000  # lines of one claimed range; a wider one says nothing

_IDENTIFIER = re.compile(r"[\w$]++")
_INTRODUCING = {
    *("line", "lines", "Line", "Lines", "L", "function", "contract"),
    *("in", "and", "to", "of", "the", "at", "sol"),
}
_LINES = re.compile(
    r"(?:\blines?|\bl|:|#l)[ \t.:#]*+"
    r"([0-9]{1,7}(?:[ \t]*+(?:,|-|\u2013|\u2014|to|and|&)[ \t]*+(?:l(?:ines?)?[ \t]*+)?[0-9]{1,7})*+)",
    re.IGNORECASE,
)
_RANGE = re.compile(
    r"([0-9]{1,7})[ \t]*+(?:(?:-|\u2013|\u2014|to)[ \t]*+(?:l(?:ines?)?[ \t]*+)?([0-9]{1,7}))?", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Hits:
    """How a claimed location compares with the true one; None where the truth names no functions or lines."""

    function: bool | None = None
    line: bool | None = None
    line_iou: float | None = None


def compare(
    location: str, lines: Collection[int], true_functions: Collection[str], true_lines: Collection[int]
) -> Hits:
    """Compare a claim (its location in words, and its lines) with the vulnerable functions and lines."""
    claimed, true = {*lines, *lines_in(location)}, {*true_lines}
    return Hits(
        function=names_function(location, true_functions) if true_functions else None,
        line=any(abs(a - b) <= NEAR for a in true for b in claimed) if true else None,
        line_iou=len(claimed & true) / len(claimed | true) if true else None,
    )


def names_function(location: str, functions: Collection[str]) -> bool:
    """Tell whether one of the functions is named, as a word of its own; `Vault.withdraw(uint256)` names withdraw."""
    words = {*_IDENTIFIER.findall(location)}
    return any(_bare(function) in words for function in functions)


def _bare(function: str) -> str:
    named = function.partition("(")[0].rpartition(".")[2].strip()
    return named.removeprefix("function ").strip() or function


def words_in(location: str) -> set[str]:
    """Find the names in a location, such as functions; no numbers, and no words that only introduce lines."""
    return {word for word in _IDENTIFIER.findall(location[:10_000]) if not word.isdigit()} - _INTRODUCING


def lines_in(location: str) -> set[int]:
    """Find the line numbers that a location names, as in `lines 12-15`, `L40`, `Vault.sol:7` or `line 3 and 9`."""
    numbers: set[int] = set()
    for mention in _LINES.finditer(location[:10_000]):
        for first, last in _RANGE.findall(mention[1]):
            low, high = int(first), int(last or first)
            if 0 < low <= high < low + WIDEST_RANGE:
                numbers.update(range(low, high + 1))
    return numbers
