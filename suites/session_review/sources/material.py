"""Values of exported JSON as a session can hold them: storable text, times, and refusals with a reason."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from suites.session_review.session import TERMINAL, Status

DEEPEST = 100  # levels of nested JSON; real sessions have about ten

STILL_RUNNING = "session is not over"
NO_SESSION = "not a session"
NO_STATUS = "session without status"
TOO_DEEP = "nested too deeply"
NO_ID = "session without session_id"

BLOCKS = ("tool_use", "tool_result", "thinking", "redacted_thinking")  # parts of a message that are not its text


class RefusedError(Exception):
    """This cannot become a session, for one of the fixed reasons; `by_design` where nothing is wrong with it."""

    def __init__(self, reason: str, *, by_design: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.by_design = by_design


def text(value: Any) -> str | None:
    """Convert a value to text that every table can hold: JSON where it is not text; None where there is nothing in it.

    NUL becomes U+FFFD, and half a surrogate pair `?`.
    """
    if value is None or value == "":
        return None
    text_of_value = value if isinstance(value, str) else as_json(value)
    return text_of_value.encode("utf-8", "replace").decode("utf-8").replace("\x00", "\ufffd")


def as_json(value: Any) -> str:
    """Write the value as readable JSON on one line."""
    return json.dumps(value, ensure_ascii=False, default=str)


def decoded(value: Any) -> Any:
    """Decode a text that is JSON; leave anything else as it is. Raises RefusedError for JSON nested too deeply."""
    if not isinstance(value, str):
        return value
    try:
        decoded_value = json.loads(value)
    except (ValueError, RecursionError):
        return value
    require_flat(decoded_value)
    return decoded_value


def result_text(value: Any) -> str | None:
    """Read a tool's result as the agent read it: the text alone where the export wraps it (`result` or `content`)."""
    if isinstance(value, Mapping):
        wrapped = [name for name in ("result", "content") if isinstance(value.get(name), str)]
        if wrapped and set(value) <= {wrapped[0], "is_error"}:
            return text(value[wrapped[0]])
    return text(value) if value not in ({}, []) else None


def content_text(content: Any) -> str | None:
    """Read the text of a message, whose content may come in parts; those of tools and of thoughts are none of it."""
    if not isinstance(content, list):
        return text(content)
    parts = (part for part in content if not isinstance(part, Mapping) or part.get("type") not in BLOCKS)
    return "\n".join(filter(None, (text(_part_text(part)) for part in parts))) or None


def _part_text(part: Any) -> Any:
    return part.get("text", part) if isinstance(part, Mapping) else part


def microseconds(value: Any) -> int | None:
    """Convert a time (microseconds since 1970, or ISO 8601) to microseconds; None where no table could hold it."""
    if isinstance(value, str):
        value = _iso_microseconds(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if is_number and 0 <= value < 2**62 else None


def _iso_microseconds(value: str) -> float | None:
    try:
        at = datetime.fromisoformat(value)
        return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1e6)
    except (ValueError, OverflowError):
        return None


def objects(value: Any) -> list[Mapping[str, Any]]:
    """Select the JSON objects in a list; none where it is no list."""
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, Sequence) else []


def mapping(value: Any) -> Mapping[str, Any]:
    """Return the value where it is a JSON object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def status(value: Any) -> Status:
    """Read the status of a session that is over. Raises RefusedError for any other."""
    word = str(value).strip().lower().replace("-", "_") if isinstance(value, str) else ""
    word = {"canceled": "cancelled", "timeout": "timed_out"}.get(word, word)
    for terminal in TERMINAL:
        if word == terminal:
            return terminal
    if not word:
        raise RefusedError(NO_STATUS)
    raise RefusedError(STILL_RUNNING, by_design=True)


def identity(value: Any) -> str:
    """Read the name of a session. Raises RefusedError where there is none."""
    name = (text(value) or "").strip()
    if not name:
        raise RefusedError(NO_ID)
    return name


def require_flat(value: Any) -> None:
    """Raise RefusedError where JSON is nested so deeply that code working through it could overflow its stack."""
    level = [value]
    for _ in range(DEEPEST):
        level = [
            child
            for node in level
            if isinstance(node, dict | list)
            for child in (node.values() if isinstance(node, dict) else node)
        ]
        if not level:
            return
    raise RefusedError(TOO_DEEP)
