"""Values of JSON that others wrote: typed as they are expected, else empty; chat messages in one form."""

import json
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from evalake.core.files import tables_beside
from evalake.models.request import Reply
from evalake.sdk import sources
from evalake.sdk.sources import utf8, without_nul
from evalake.sdk.tool_results import as_score

TOOLS = tables_beside(__file__, "fields.toml")
_UNSTORABLE = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")  # escapes of NUL and of surrogates, which no table holds


def read_json(content: bytes | str, where: str) -> Any:
    """Decode JSON in UTF-8; `?` stands for what no table holds. Raises SourceError where it is none."""
    text = utf8(content, where) if isinstance(content, bytes) else content
    decoded = sources.read_json(text, where)
    return _storable(decoded) if _UNSTORABLE.search(text) else decoded


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return without_nul(value)
    if isinstance(value, dict):
        return {_storable(name): _storable(each) for name, each in value.items()}
    return [_storable(each) for each in value] if isinstance(value, list) else value


def at(value: Any, path: str) -> Any:
    """Look up a value by its path, whose parts are separated by dots; None where there is none."""
    for part in path.split("."):
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


def as_mapping(value: Any, path: str | None = None) -> dict[str, Any]:
    """Take an object, or that at a path, as it is, and anything else as an empty one."""
    value = value if path is None else at(value, path)
    return value if isinstance(value, dict) else {}


def as_list(value: Any, path: str | None = None) -> list[Any]:
    """Take a list, or that at a path, as it is, and anything else as an empty one."""
    value = value if path is None else at(value, path)
    return value if isinstance(value, list) else []


def objects(value: Any, path: str | None = None) -> list[dict[str, Any]]:
    """Take the entries of a list, or of that at a path, as objects."""
    return list(map(as_mapping, as_list(value, path)))


def as_text(value: Any, path: str | None = None) -> str | None:
    """Take a text, or that at a path, as it is, and anything else but null as JSON."""
    value = value if path is None else at(value, path)
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def as_count(value: Any) -> int | None:
    """Take a number from 0 that is whole; None for anything else."""
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return int(value) if whole and not isinstance(value, bool) and 0 <= value < 2**63 else None


def as_reply(text: str | None, given: Any, paths: Mapping[str, str], **more: Any) -> Reply:
    """Build a reply with the numbers at the paths: whole ones of tokens, the cached among those that were sent."""
    told = {name: as_score(at(given, path)) for name, path in paths.items()}
    told |= {name: as_count(number) for name, number in told.items() if name.endswith("tokens")}
    cached, sent = told.get("cached_input_tokens"), told.get("input_tokens")
    if cached is not None and sent is not None:
        told["cached_input_tokens"] = min(cached, sent)
    return Reply(text, **{**told, **more})


def numbered(name: str, seen: Counter[str]) -> str:
    """Tell a further scorer of one name apart by its number."""
    seen[name] += 1
    return name if seen[name] == 1 else f"{name}_{seen[name]}"


def decoded_lines(lines: Sequence[str], name: str) -> list[Any]:
    """Decode a file with JSON on each line. Raises SourceError with the number of a line that holds none."""
    return [read_json(line, f"{name}:{number}") for number, line in enumerate(lines, start=1) if line.strip()]


def address_of(url: str | None) -> str | None:
    """Take the base URL that was asked; None for a provider's own."""
    return url.rstrip("/") if url else None


def count_further(given: Mapping[str, Any], known: Collection[str], left_over: Counter[str]) -> None:
    """Count the fields that hold something and have no place, like those of a later version of a tool."""
    empty: tuple[Any, ...] = (None, "", [], {}, False)
    left_over.update(f"fields {name}" for name, value in given.items() if name not in known and value not in empty)


def conversation(prompt: str) -> list[dict[str, Any]]:
    """Read what was asked: the messages of a chat, or the whole prompt as the user's."""
    try:
        chat = json.loads(prompt)
    except (ValueError, RecursionError):
        chat = None
    if isinstance(chat, list) and chat and all(isinstance(each, dict) and "role" in each for each in chat):
        return [chat_message(each) for each in chat]
    return [{"role": "user", "content": prompt}]


def content_text(content: Any) -> tuple[str | None, str | None]:
    """Split the content of a message into its text and its reasoning; parts that are neither stay as JSON."""
    if not isinstance(content, list):
        return as_text(content), None
    texts, thoughts = [], []
    for part in content:
        match as_mapping(part):
            case {"type": "text", "text": str(text)}:
                texts.append(text)
            case {"type": "reasoning", "reasoning": str(thought)}:
                thoughts.append(thought)
            case _:
                texts.append(as_text(part) or "")
    return "\n".join(texts), "\n".join(thoughts) or None


def chat_message(message: Mapping[str, Any]) -> dict[str, Any]:
    """Write a message as chat completions have it, with its calls of tools, or the call it is a result of."""
    text, reasoning = content_text(message.get("content"))
    reasoning = reasoning or as_text(message.get("reasoning_trace"))
    written: dict[str, Any] = {"role": str(message.get("role", "")), "content": text or ""}
    if reasoning:
        written["reasoning"] = reasoning
    if calls := as_list(message.get("tool_calls")):
        written["tool_calls"] = [_tool_call(call) for call in map(as_mapping, calls)]
    for name in ("tool_call_id", "name", "error"):
        value = message.get(name)
        value = next(iter(value), None) if isinstance(value, list) else value  # Every Eval Ever lists ids
        if value is not None:
            written[name] = as_text(value)
    return written


def _tool_call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call.get("function", call.get("name"))
    if isinstance(function, dict):
        return dict(call)
    arguments = as_text(call.get("arguments"))
    return {"id": call.get("id"), "type": "function", "function": {"name": function, "arguments": arguments}}
