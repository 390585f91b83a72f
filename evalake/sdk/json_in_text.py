"""Find the well-formed JSON objects in a text that may be anything, in time linear in its length.

A model's reply may hold JSON between prose, in fences, cut off, nested beyond any recursion limit, or be made to wear a
parser out. So this walks the JSON grammar (RFC 8259) with a stack of its own. What fails while an object is being read
fails for every container open at that moment, and none of them is tried again.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, NoReturn

# A reply's thinking apart from what it says: `<think>…</think>`, and the channels of harmony.


_TAG = re.compile(r"<(/?)think>", re.IGNORECASE | re.ASCII)
_CHANNEL = re.compile(
    r"<\|channel\|>\s*+(\w++)(?:[^<]{0,100}<\|constrain\|>[^<]{0,100})?(?:[^<\n]{0,100}<\|message\|>)?", re.ASCII
)
_END = re.compile(r"<\|(?:end|return|call|start|channel)\|>")
_START = re.compile(r"<\|start\|>\w*")
_UNMARKED = re.compile(r"\s*+analysis(.*)assistantfinal(.*)", re.DOTALL)  # servers that drop the marks of channels
FINAL = "final"


def split_thinking(text: str) -> tuple[str, str]:
    """Split a reply into what it says outside its thinking and what it says inside."""
    if "<" not in text:
        unmarked = _UNMARKED.fullmatch(text) if "assistantfinal" in text else None
        return (unmarked[2], unmarked[1]) if unmarked else (text, "")
    said, thought = _split_channels(text)
    outside: list[str] = []
    inside: list[str] = [thought]
    tags = list(_TAG.finditer(said))
    position, thinking = 0, bool(tags) and tags[0][1] == "/"
    for tag in tags:
        (inside if thinking else outside).append(said[position : tag.start()])
        position, thinking = tag.end(), tag[1] != "/"
    (inside if thinking else outside).append(said[position:])
    return "".join(outside), "".join(inside)


def _split_channels(text: str) -> tuple[str, str]:
    """Split a text into what its channel `final` says, with what stands before all channels, and the other channels."""
    channels = list(_CHANNEL.finditer(text))
    if not channels:
        return text, ""
    said = [_START.sub("", text[: channels[0].start()])]
    thought: list[str] = []
    for channel in channels:
        end = _END.search(text, channel.end())
        (said if channel[1] == FINAL else thought).append(text[channel.end() : end.start() if end else len(text)])
    return "".join(said), "".join(thought)


_SPACE = re.compile(r"[ \t\n\r]*+")
_STRING = r'"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+"'
_KEY = re.compile(rf"({_STRING})[ \t\n\r]*+:[ \t\n\r]*+")
_SCALAR = re.compile(rf"({_STRING})|-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?|true|false|null")
_NUMBER = re.compile(r"[+-]?\d{1,400}(?P<fraction>\.\d{0,400})?(?P<exponent>[eE][+-]?\d{1,4})?", re.ASCII)
_OBJECT_START = re.compile(r'\{(?=[ \t\n\r]*+["}])')


def refuse_constant(constant: str) -> NoReturn:
    """Raise ValueError: NaN and infinite numbers, which Python's decoder takes, are no JSON."""
    raise ValueError(f"{constant} is no JSON")


_PLAIN = json.JSONDecoder(object_pairs_hook=list, parse_constant=refuse_constant)


@dataclass(frozen=True, slots=True)
class Found:
    """A well-formed object text[start:end], and the strings that it holds under the wanted key, in order."""

    start: int
    end: int
    strings: tuple[str, ...]


@dataclass(slots=True)
class _Container:
    start: int
    closing: str  # "}", "}}" or "]"
    strings: list[str] = field(default_factory=list)


def find_objects(text: str, key: str) -> Iterator[Found]:
    """Yield the well-formed JSON objects of `text` that hold a string under `key` at any depth, in order of start.

    Braces may be doubled, as a model that imitates a template writes them: `{{"a": 1}}` is `{"a": 1}`. What stands
    inside a JSON string is text, and no object, as long as the JSON around the string is well-formed. Every value of a
    repeated key is reported. Never raises.
    """
    broken: set[int] = set()
    position = 0
    while match := _OBJECT_START.search(text, position):
        brace = match.start()
        position = brace + 1
        doubled = brace > 0 and text[brace - 1] == "{"
        for start, closing in (((brace - 1, "}}"),) if doubled else ()) + ((brace, "}"),):
            if start in broken:
                continue
            read = _read(text, start, closing, key, broken)
            if read is not None:
                end, values = read
                yield from sorted(values, key=lambda each: each.start)
                position = end
                break


def only_object(text: str) -> list[tuple[str, Any]] | None:
    """Read the keys and values of a text that is one JSON object and holds no other one; None for any other text.

    Most replies are such a text. For these it finds what `find_objects` would find, in a tenth of the time.
    """
    if not (text.startswith("{") and text.endswith("}")) or text.count("{") > 1:
        return None
    try:
        pairs: list[tuple[str, Any]] = _PLAIN.decode(text)
    except (ValueError, RecursionError):
        return None
    return pairs


def json_object(text: str) -> dict[str, Any] | None:
    """Decode a text that is one JSON object; None for any other text, and for numbers and depths beyond reason."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def number_of(value: Any) -> Any:
    """Convert a text into the number that it states, and a whole fraction into an integer; leave all else."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    stated = _NUMBER.fullmatch(value.strip()) if isinstance(value, str) else None
    if stated is None:
        return value
    number = float(stated[0])
    if not isfinite(number):
        return value
    return int(stated[0]) if stated["fraction"] is None and stated["exponent"] is None else number


def as_share(value: Any) -> float | None:
    """Convert a number from 0 to 1, like a stated confidence, to a float; None for anything else."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1 else None


def _read(text: str, start: int, closing: str, key: str, broken: set[int]) -> tuple[int, list[Found]] | None:
    """Read the object that begins at `start`: its end and all that was found in it; None if it is not well-formed."""
    open_containers = [_Container(start, closing)]
    values: list[Found] = []
    position = start + len(closing)
    fresh = True  # nothing has been read in the innermost container yet
    while open_containers:
        innermost = open_containers[-1]
        position = _after_space(text, position)
        if text.startswith(innermost.closing, position):
            position += len(innermost.closing)
            open_containers.pop()
            if innermost.strings:
                values.append(Found(innermost.start, position, tuple(innermost.strings)))
            fresh = False
            continue
        value = _next_value(text, position, innermost, fresh, key)
        if value is None:
            break
        position, wanted = value
        fresh = False
        if text.startswith(("{", "["), position):
            opening = "[" if text[position] == "[" else "{{" if text.startswith("{{", position) else "{"
            if position in broken:
                break
            open_containers.append(_Container(position, {"[": "]", "{": "}", "{{": "}}"}[opening]))
            position += len(opening)
            fresh = True
            continue
        scalar = _SCALAR.match(text, position)
        if scalar is None:
            break
        if wanted and scalar[1] is not None:
            innermost.strings.append(_content(scalar[1]))
        position = scalar.end()
    if open_containers:
        broken.update(container.start for container in open_containers)
        return None
    return position, values


def _next_value(text: str, position: int, container: _Container, first: bool, key: str) -> tuple[int, bool] | None:
    """Find where the container's next value begins, and whether it is under `key`; None where it is not well-formed."""
    if not first:
        if not text.startswith(",", position):
            return None
        position = _after_space(text, position + 1)
    if container.closing == "]":
        return position, False
    name = _KEY.match(text, position)
    return None if name is None else (name.end(), _content(name[1]) == key)


def _after_space(text: str, position: int) -> int:
    space = _SPACE.match(text, position)
    return position if space is None else space.end()


def _content(string: str) -> str:
    """Decode a JSON string token."""
    return str(json.loads(string)) if "\\" in string else string[1:-1]
