"""Reads a judge's first answer: the total on its last line, the four category scores, and the analysis."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

ATTEMPTS = 3
CATEGORIES = ("logical_flow", "consistency", "tool_relevance", "synthesis_quality")
CATEGORY_POINTS = 25

LONGEST_LINE = 100  # characters of a line that could hold a total

MOST_REMARKS = 3  # lines without a number that may follow the total

# A total, and behind it a remark in which no other number stands. A number alone takes closing punctuation or a remark
# in brackets only: with more, it may be the last point of a list.
_LABEL, _NUMBER = r"(?:#{1,6}\s*)?(?:total(?:\s+score)?|(?:final\s+)?score)\s*:\s*", r"([0-9]{1,3})"
_OF, _REMARK = r"\s*(?:/|out of)\s*100", r"(?:\s*[.!,;:()\[\]–—-][^0-9]*)?"
_TOTAL = re.compile(
    rf"{_LABEL}{_NUMBER}(?:{_OF})?{_REMARK}|(?:#{{1,6}}\s*)?{_NUMBER}(?:{_OF}{_REMARK}|\s*[.!,;:]?|\s*\([^0-9]*\)\.?)",
    re.IGNORECASE,
)
_FENCE = re.compile(r"[`~]{3,}\s*[a-z]*", re.IGNORECASE)
_EMPHASIS = str.maketrans("", "", "*`")
_NAMES = {category: category.replace("_", "[ \t_-]+") for category in CATEGORIES}
_CATEGORY = "|".join(f"(?P<{category}>{name})" for category, name in _NAMES.items())
# At the start of a line: marks of headings, lists and tables, a number, then the category's name
_LINE = re.compile(rf"[\s#>|()_-]*(?:[0-9]{{1,2}}[.):]\s*)?(?:{_CATEGORY})(?![a-z])", re.IGNORECASE)
_POINTS = re.compile(r"(?<![0-9.,/-])([0-9]{1,2})\s*/\s*25(?![0-9.])")


@dataclass(frozen=True, slots=True)
class FirstTurn:
    """What the first turn gave. `total` is None where none of the attempts ended in one."""

    total: int | None
    analysis: str | None
    categories: Mapping[str, int | None]

    @property
    def breakdown_consistent(self) -> bool | None:
        """Whether the four categories add up to the total; None where one of the five is unknown."""
        points = list(self.categories.values())
        if self.total is None or any(each is None for each in points):
            return None
        return sum(each for each in points if each is not None) == self.total


def read_total(answer: str | None) -> int | None:
    """Read the total at the end of an answer; None where anything else stands there.

    Allowed are an integer from 0 to 100, alone or as `67/100`, and either after `Total:`, `Total score:`, `Score:` or
    `Final score:`; in any case, with emphasis, in a fence, and with the mark of a heading. Punctuation or a remark may
    follow, on the same line or below, where no other number stands in it.
    """
    found = _find_total(answer or "")
    return None if found is None else found[0]


def read_first_turn(answers: Sequence[str | None]) -> FirstTurn:
    """Combine what the attempts of the first turn gave.

    The analysis is the longest, whichever attempt gave the total; the line with the total is no part of it. The
    category scores are those of the answer with the total, or of the analysis where that answer lacks any.
    """
    analysis = max((_without_total(answer or "") for answer in answers), key=len, default="")
    decisive = next((answer for answer in answers if read_total(answer) is not None), None)
    breakdown = read_categories(decisive or "")
    if None in breakdown.values():
        breakdown = read_categories(analysis)
    return FirstTurn(read_total(decisive), analysis or None, breakdown)


def read_categories(analysis: str) -> dict[str, int | None]:
    """Read the points of each category from its last `X/25`, on a line that begins with its name or on a later one."""
    points: dict[str, int | None] = dict.fromkeys(CATEGORIES)
    current: str | None = None
    for line in analysis.splitlines():
        plain = line.translate(_EMPHASIS)
        if match := _LINE.match(plain):
            current = match.lastgroup
            plain = plain[match.end() :]
        if current is not None and (scored := _POINTS.search(plain)):
            given = int(scored[1])
            points[current] = given if given <= CATEGORY_POINTS else None
            current = None
    return points


def _find_total(answer: str) -> tuple[int, int] | None:
    """Find the total and the number of its line; None where the answer does not end in one."""
    lines = answer.splitlines()
    remarks = 0
    for number in range(len(lines) - 1, -1, -1):
        line = lines[number].strip()
        if not line or _FENCE.fullmatch(line):
            continue
        if (total := _total_of(line)) is not None:
            return total, number
        remarks += 1
        if remarks > MOST_REMARKS or any(character.isdigit() for character in line):
            return None
    return None


def _total_of(line: str) -> int | None:
    if len(line) > LONGEST_LINE:
        return None
    plain = line.replace("*", " ").replace("_", " ").replace("`", " ")
    match = _TOTAL.fullmatch(" ".join(plain.split()))
    if match is None:
        return None
    number = match[1] or match[2]
    total = int(number)
    return total if total <= 100 and number == str(total) else None


def _without_total(answer: str) -> str:
    """Return the text before the line with the total, without the fence that it stands in."""
    found = _find_total(answer)
    if found is None:
        return answer.strip()
    lines = answer.splitlines()[: found[1]]
    while lines and (not lines[-1].strip() or _FENCE.fullmatch(lines[-1].strip())):
        lines.pop()
    return "\n".join(lines).strip()
