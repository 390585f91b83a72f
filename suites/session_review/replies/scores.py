"""Reads a judge's first answer: the total on its last line, the four category scores, and the analysis."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

ATTEMPTS = 3
CATEGORIES = ("logical_flow", "consistency", "tool_relevance", "synthesis_quality")
CATEGORY_POINTS = 25

LONGEST_LINE = 100  # characters of a line that could hold a total

_TOTAL = re.compile(
    r"(?:#{1,6}\s*)?(?:(?:total(?:\s+score)?|(?:final\s+)?score)\s*:\s*)?([0-9]{1,3})(?:\s*/\s*100)?", re.IGNORECASE
)
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
    """Read the total on the last line that is not empty; None where that line is anything but a total.

    Allowed are an integer from 0 to 100, alone or as `67/100`, and either after `Total:`, `Total score:`, `Score:` or
    `Final score:`; in any case, with emphasis, and with the mark of a heading.
    """
    line = _last_line(answer or "")
    if len(line) > LONGEST_LINE:
        return None
    match = _TOTAL.fullmatch(" ".join(line.replace("*", " ").replace("_", " ").split()))
    if match is None or (len(match[1]) > 1 and match[1].startswith("0")):
        return None
    total = int(match[1])
    return total if total <= 100 else None


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


def _last_line(text: str) -> str:
    lines = text.rstrip().splitlines()
    return lines[-1].strip() if lines else ""


def _without_total(answer: str) -> str:
    if read_total(answer) is None:
        return answer.strip()
    stripped = answer.rstrip()
    return stripped[: len(stripped) - len(stripped.splitlines()[-1])].strip()
