"""Find the JSON object that a reply is about, in bounded time, whatever else the reply says."""

import json
from collections.abc import Collection, Mapping
from typing import Any

from suites.base.json_in_text import refuse_constant
from suites.base.thinking import split_thinking

LONGEST_REPLY = 400_000  # characters; what lies beyond is not read
MOST_ATTEMPTS = 40  # braces from which reading is tried


def find_object(text: str, keys: Collection[str]) -> Mapping[str, Any] | None:
    """Find the first JSON object of a reply that has one of the `keys`, outside of its thinking; None without one.

    NaN and infinite numbers are no JSON. Never raises.
    """
    answer, _ = split_thinking(text[:LONGEST_REPLY])
    decoder = json.JSONDecoder(parse_constant=refuse_constant)
    position = 0
    for _ in range(MOST_ATTEMPTS):
        position = answer.find("{", position)
        if position < 0:
            return None
        try:
            value, end = decoder.raw_decode(answer, position)
        except (ValueError, RecursionError):
            position += 1
            continue
        if any(key in value for key in keys):
            return value  # type: ignore[no-any-return]
        position = end
    return None
