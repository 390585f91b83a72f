"""Sessions of any system, as JSON: an alert, and the messages of the agent that investigated it.

    {
      "session_id": "checkout-5xx",          needed
      "status": "completed",                 completed, failed, cancelled or timed_out; completed where it is left out
      "alert": {…} or "text",                needed
      "messages": [                          needed, in time order
        {"role": "assistant", "content": "what it said", "thinking": "…", "at": "2026-03-01T10:00:00Z",
         "tool_calls": [{"id": "1", "name": "logs.search", "arguments": {…}}]},
        {"role": "tool", "tool_call_id": "1", "content": "what came back", "error": "…"},
        {"role": "event", "content": "paused for two hours"}
      ],
      "tools": [{"name": "logs.search", "description": "…"}],
      "agent": "…", "alert_type": "…", "runbook": "…", "final_analysis": "…", "error": "…"
    }

A message's `agent` names who it is of, where there are several.

Chat completions as OpenAI's API writes them (`tool_calls` with a `function`) are such messages, and so are those of
Anthropic's, whose content comes in blocks: `text`, `thinking`, `tool_use` and `tool_result`, whoever says them. Of
other `system` and `user` messages only the alert matters, and it stands apart. A result belongs to the call of its
`tool_call_id` (`tool_use_id` in blocks), even before that call, or to the oldest call without one. `purpose` may be
`forced_conclusion`, where a limit made the agent stop. Without a `final_analysis`, the last thing that the agent said
is its conclusion. Times are ISO 8601, or microseconds.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from evalake.sdk.json_in_text import mapping, objects
from evalake.suites.session_review.session import (
    TERMINAL,
    AgentMessage,
    Event,
    Interaction,
    Session,
    Stage,
    Status,
    Tool,
    ToolCall,
)

# Values of exported JSON as a session can hold them: storable text, times, and refusals with a reason.


DEEPEST = 100  # levels of nested JSON; real sessions have about ten

STILL_RUNNING = "session is not over"
NO_SESSION = "not a session"
NO_STATUS = "session without status"
TOO_DEEP = "nested too deeply"
NO_ID = "session without session_id"
ODD = "values that no reader expects"

THOUGHTS = ("thinking", "redacted_thinking")
USE, RESULT = "tool_use", "tool_result"  # the ends of the types of blocks, like `server_tool_use`
THINKING = ("thinking", "reasoning_content", "reasoning")  # fields of a message


class RefusedError(Exception):
    """This cannot become a session, for one of the fixed reasons.

    `by_design` where nothing is wrong with it, `passing` where it may be had later.
    """

    def __init__(self, reason: str, *, by_design: bool = False, passing: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.by_design, self.passing = reason, by_design, passing


@contextmanager
def refusing() -> Iterator[None]:
    """Raise RefusedError where a reader breaks on JSON that has other types, sizes or depths than it expects."""
    try:
        yield
    except RecursionError as error:
        raise RefusedError(TOO_DEEP) from error
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise RefusedError(ODD) from error


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
    parts = (part for part in content if not isinstance(part, Mapping) or not _is_apart(part))
    return "\n".join(filter(None, (text(_part_text(part)) for part in parts))) or None


def blocks_in(content: Any) -> Any:
    """Return a content's blocks: in a list, alone, or written as JSON; any other content as it is."""
    found = decoded(content) if isinstance(content, str) and content.startswith(("[{", "{")) else content
    found = [found] if isinstance(found, Mapping) and kind_of(found).endswith((USE, RESULT)) else found
    is_blocks = isinstance(found, list) and all(kind_of(each) for each in found)
    return found if found is content or is_blocks else content


def spoken_text(content: Any) -> str | None:
    """Read what an agent said."""
    return content_text(blocks_in(content))


def kind_of(block: Any) -> str:
    """Return the type of a block; empty without one."""
    return str(mapping(block).get("type") or "")


def _is_apart(block: Mapping[str, Any]) -> bool:
    return kind_of(block) in THOUGHTS or kind_of(block).endswith((USE, RESULT))


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


def conversation(call: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Read the messages of a call to a model: a list, in an object or not, or that as JSON text."""
    held = decoded(call.get("conversation"))
    return objects(mapping(held).get("messages") if isinstance(held, Mapping) else held)


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


def read_generic(body: Mapping[str, Any]) -> Session:
    """Read the session of a generic body. Raises RefusedError where it is none, or not over."""
    if not isinstance(body.get("messages"), list) or "alert" not in body:
        raise RefusedError(NO_SESSION)
    agent = text(body.get("agent")) or "unknown"
    state = status(body.get("status", "completed"))
    interactions = _interactions(body)
    spoken = [each.text for each in interactions if isinstance(each, AgentMessage) and each.text]
    times = [each.at_us for each in interactions if each.at_us is not None]
    tools = tuple(_tools(body))
    return Session(
        session_id=identity(body.get("session_id")),
        status=state,
        agent=agent,
        alert=text(body.get("alert")) or "",
        alert_type=text(body.get("alert_type")),
        runbook=text(body.get("runbook")),
        final_analysis=text(body.get("final_analysis")) or next(reversed(spoken), None),
        error=text(body.get("error")),
        stages=tuple(_stages(body, agent, state, tools)),
        started_at_us=min(times, default=None),
        completed_at_us=max(times, default=None),
    )


def _stages(body: Mapping[str, Any], agent: str, state: str, tools: tuple[Tool, ...]) -> Iterator[Stage]:
    """Yield a stage for each agent that messages name, in the order in which they first spoke."""
    by_agent: dict[str, list[Mapping[str, Any]]] = {}
    for message in objects(body.get("messages")):
        by_agent.setdefault(text(message.get("agent")) or agent, []).append(message)
    for name, own in by_agent.items():
        if interactions := _interactions({"messages": own}):
            yield Stage("investigation", name, state, interactions, tools)


class _Calls:
    """The interactions so far, and the calls and results among them that still lack each other."""

    def __init__(self, expected: Iterable[str]) -> None:
        self.interactions: list[Interaction] = []
        self._expected = Counter(expected)  # ids of calls to come
        self._open: dict[int, None] = {}  # the places of calls without an answer, in order
        self._places: dict[str, list[int]] = {}  # of them, by id
        self._early: dict[str, list[Mapping[str, Any]]] = {}  # results that came before their call

    def add(self, call: ToolCall, given: str | None) -> None:
        """Add a call, with the result that came before it."""
        place = len(self.interactions)
        self.interactions.append(call)
        self._open[place] = None
        if given is not None:
            self._expected[given] -= 1
            self._places.setdefault(given, []).append(place)
            if early := self._early.get(given):
                self.answer(given, early.pop(0))

    def answer(self, given: str | None, message: Mapping[str, Any]) -> None:
        """Add a tool's message to its call; without one, add a call: the message shows that one was not recorded."""
        places = self._open if given is None else [each for each in self._places.get(given, ()) if each in self._open]
        if (place := next(iter(places), None)) is not None:
            del self._open[place]
            call = self.interactions[place]
            assert isinstance(call, ToolCall)
            self.interactions[place] = replace(call, **_result(message))
        elif given is not None and self._expected[given] > 0:
            self._early.setdefault(given, []).append(message)
        else:
            tool = text(message.get("name")) or "unknown"
            self.interactions.append(replace(ToolCall(tool, at_us=_at(message)), **_result(message)))


def _interactions(body: Mapping[str, Any]) -> tuple[Interaction, ...]:
    messages = objects(body.get("messages"))
    calls = _Calls(given for message in messages for _, given in _calls(message) if given is not None)
    for message in messages:
        if message.get("role") == "assistant":
            calls.interactions.extend(_said(message))
        elif message.get("role") == "event":
            calls.interactions.append(Event(text(message.get("content")) or "something happened", at_us=_at(message)))
        for call, given in _calls(message):
            calls.add(call, given)
        results = _blocks(message, RESULT)
        for block in results:
            calls.answer(_name(block, "tool_use_id", "tool_call_id"), _as_tool_message(block, message))
        if message.get("role") == "tool" and not results:
            calls.answer(_name(message, "tool_call_id", "tool_use_id", "call_id"), message)
    return tuple(calls.interactions)


def _name(holder: Mapping[str, Any], *names: str) -> str | None:
    return next((text(holder[name]) for name in names if holder.get(name) is not None), None)


def _result(message: Mapping[str, Any]) -> dict[str, Any]:
    """Read a tool's message; an empty result is one, too."""
    empty = None if message.get("content") is None else ""
    return {"result": result_text(content_text(message.get("content"))) or empty, "error": text(message.get("error"))}


def _said(message: Mapping[str, Any]) -> Iterator[AgentMessage]:
    one = AgentMessage(
        at_us=_at(message),
        purpose=text(message.get("purpose")) or "investigation",
        thinking=_name(message, *THINKING) or _thought(message),
        text=spoken_text(message.get("content")),
        error=text(message.get("error")),
    )
    if one.thinking or one.text or one.error:
        yield one


def _calls(message: Mapping[str, Any]) -> Iterator[tuple[ToolCall, str | None]]:
    """Yield the tool calls of a message with their ids."""
    for call in objects(decoded(message.get("tool_calls"))):
        function = mapping(call.get("function")) or call
        tool, server = text(function.get("name")) or "unknown", text(call.get("server"))
        arguments = text(function.get("arguments")) or "{}"
        yield ToolCall(tool, server=server, at_us=_at(message), arguments=arguments), _name(call, "id")
    for block in _blocks(message, USE):
        tool, arguments = text(block.get("name")) or "unknown", text(block.get("input")) or "{}"
        server = text(block.get("server") or block.get("server_name"))
        yield ToolCall(tool, server=server, at_us=_at(message), arguments=arguments), _name(block, "id")


def _blocks(message: Mapping[str, Any], *ends: str) -> list[Mapping[str, Any]]:
    """Select the blocks of these types in a message's content, where that comes in blocks."""
    content = message.get("content")
    content = content if message.get("role") == "tool" else blocks_in(content)  # a result is always text
    return [each for each in objects(content) if kind_of(each).endswith(ends)] if isinstance(content, list) else []


def _thought(message: Mapping[str, Any]) -> str | None:
    return "\n".join(filter(None, (text(block.get("thinking")) for block in _blocks(message, *THOUGHTS)))) or None


def _as_tool_message(block: Mapping[str, Any], message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Convert a `tool_result` block of a message to a message of the tool."""
    error = "the tool reported an error" if block.get("is_error") is True else None
    return {"content": block.get("content"), "error": error, "at": message.get("at")}


def _at(message: Mapping[str, Any]) -> int | None:
    return microseconds(message.get("at"))


def _tools(body: Mapping[str, Any]) -> Iterator[Tool]:
    for listed in objects(body.get("tools")):
        tool = mapping(listed.get("function")) or listed
        if (name := text(tool.get("name"))) is not None:
            yield Tool(name, text(tool.get("server")), text(tool.get("description")))
