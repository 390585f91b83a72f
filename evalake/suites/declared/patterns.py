"""Regular expressions that a user writes, in Python's dialect: the `regex` library, unlike `re`, gives up in time."""

import re
from collections import Counter, deque
from typing import Any

import regex

from evalake.core.errors import SuiteError

SECONDS = 2.0
"""Of the processor, after which one search is given up."""

MOST_GIVEN_UP = 3
"""Searches of one pattern, after which it is no longer tried."""


class PatternError(ValueError):
    """A text is no regular expression."""


_given_up: Counter[str] = Counter()
_FUZZY = re.compile(r"(?<!\\)\{(?:\d+<=?)?[eids](?:<=?\d+)?(?:[,:][^{}]*)?\}")  # which `re` takes for text


def require_pattern(pattern: str) -> None:
    """Refuse what is no regular expression, or means another thing to the library. Raises PatternError."""
    try:
        regex.compile(pattern)
    except (regex.error, OverflowError, RecursionError) as error:
        raise PatternError(f"pattern: {pattern!r} is no regular expression: {error}") from error
    if found := _FUZZY.search(pattern):
        raise PatternError(
            f"pattern: {pattern!r} has {found[0]}, which would match approximately: write its brace as \\{{"
        )


def last_match(pattern: str, text: str, *, ignore_case: bool = False, first: bool = False) -> Any:
    """Find the last match, or the first; None where there is none.

    Raises SuiteError where the text is not searched in time, PatternError where the pattern is none.
    """
    if _given_up[pattern] < MOST_GIVEN_UP:
        require_pattern(pattern)
        flags = regex.IGNORECASE if ignore_case else 0
        try:
            if first:
                return regex.search(pattern, text, flags, timeout=SECONDS)
            last = deque(regex.finditer(pattern, text, flags, timeout=SECONDS), maxlen=1)
            return last[0] if last else None
        except TimeoutError:
            _given_up[pattern] += 1
    raise SuiteError(
        f"the pattern {pattern!r} takes more than {SECONDS:g} s for one text: write it without repeats within repeats"
    )


def matches(pattern: str, text: str, *, ignore_case: bool = False) -> bool:
    """Tell whether a pattern is found in a text. Raises as `last_match`."""
    return last_match(pattern, text, ignore_case=ignore_case, first=True) is not None
