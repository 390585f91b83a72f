"""A guard's reply -> its verdict, read as a guard's consumer would read it.

Where the rules (docs: metrics, "Reply to verdict") leave a choice, it is made here:

* The answer outside thinking is read to the end, objects first, then truncated ones, before thinking is looked at.
* An object counts from where it begins, so an outer `action` goes before one nested in it.
* Only the key `action` counts, and only an exact verdict in any case: no synonyms, no surrounding white space.
* A key given twice is two verdicts: the first is kept, and where they differ that is a conflict.
* JSON inside a JSON string is text. Single quotes, comments, NaN and raw line breaks in strings are not well-formed;
  objects that have them are read like truncated ones, by the text `"action": "<verdict>"`.
* Verdicts conflict where the part of the reply that decided, read in the way that decided, holds two different ones.
"""

import re
from collections.abc import Mapping
from typing import Any

from evalake.core.hashing import record
from evalake.sdk.json_in_text import as_share, find_objects, split_thinking

ACTIONS = ("ALLOW", "WARN", "BLOCK")
ERROR_KINDS = ("TIMEOUT_ERROR", "FORMAT_ERROR", "CONTENT_FILTER", "TOKEN_LIMIT")

_ACTION_TEXT = re.compile(r'"action"\s*+:\s*+"((?i:allow|warn|block))"(?!\s*+\|)', re.ASCII)
_NO_REPLY = {"content_filter": "CONTENT_FILTER", "length": "TOKEN_LIMIT"}


@record
class Verdict:
    """What a reply comes to. `reason` and `confidence` (0..1) are None where the model gave none that can be read."""

    verdict: str  # one of ACTIONS or ERROR_KINDS
    conflict: bool = False
    reason: str | None = None
    confidence: float | None = None


def read_verdict(text: str | None, finish_reason: str | None = None) -> Verdict:
    """Read the verdict of a reply. Never raises."""
    if text is None or not text.strip():
        return Verdict(_NO_REPLY.get(finish_reason or "", "TIMEOUT_ERROR"))
    for part in split_thinking(text):
        verdict = _from_objects(part) or _from_text(part)
        if verdict is not None:
            return verdict
    return Verdict("FORMAT_ERROR")


def _from_objects(text: str) -> Verdict | None:
    first: Verdict | None = None
    for candidate in find_objects(text, "action"):
        for action in filter(None, (_as_action(value) for key, value in candidate.pairs if key == "action")):
            if first is None:
                given = {} if candidate.is_doubled else dict(candidate.pairs)
                first = Verdict(action, False, *_beside_action(given))
            elif action != first.verdict:
                return Verdict(first.verdict, True, first.reason, first.confidence)
    return first


def _from_text(text: str) -> Verdict | None:
    actions = [match[1].upper() for match in _ACTION_TEXT.finditer(text)]
    return Verdict(actions[0], len(set(actions)) > 1) if actions else None


def _as_action(value: Any) -> str | None:
    return value.upper() if isinstance(value, str) and value.isascii() and value.upper() in ACTIONS else None


def _beside_action(given: Mapping[str, Any]) -> tuple[str | None, float | None]:
    """Read the reason and confidence beside an action."""
    reason = given.get("reason")
    return reason if isinstance(reason, str) else None, as_share(given.get("confidence"))
