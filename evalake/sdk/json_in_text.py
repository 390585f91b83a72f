"""Find the well-formed JSON objects in a text that may be anything, and take a reply's thinking out of it."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
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


_NUMBER = re.compile(r"[+-]?\d{1,400}(?P<fraction>\.\d{0,400})?(?P<exponent>[eE][+-]?\d{1,4})?", re.ASCII)
_OBJECT_START = re.compile(r'\{(?=[ \t\n\r]*+["}])')


def refuse_constant(constant: str) -> NoReturn:
    """Raise ValueError: NaN and infinite numbers, which Python's decoder takes, are no JSON."""
    raise ValueError(f"{constant} is no JSON")


class _Pairs(list[tuple[str, Any]]):
    """The keys and values of an object, of which keys may stand twice."""


_DECODER = json.JSONDecoder(object_pairs_hook=_Pairs, parse_constant=refuse_constant)
_LETTERS = re.compile(r"\{\{|\}\}|.", re.DOTALL)
MOST_ATTEMPTS = 100  # braces from which nothing can be read as they stand: each takes time by the length of the text


@dataclass(frozen=True, slots=True)
class Found:
    """A well-formed object: its keys and values in order, its strings under the wanted key, any doubled braces."""

    pairs: list[tuple[str, Any]]
    strings: tuple[str, ...]
    is_doubled: bool = False


def find_objects(text: str, key: str) -> Iterator[Found]:
    """Yield the well-formed JSON objects of `text` that hold a string under `key`, outer ones before inner ones.

    Braces may be doubled, as a model that imitates a template writes them: `{{"a": 1}}` is `{"a": 1}`. What stands
    inside a JSON string is text, and no object, as long as the JSON around the string is well-formed. Never raises.
    """
    position = attempts = 0
    while attempts < MOST_ATTEMPTS and (match := _OBJECT_START.search(text, position)):
        start = match.start()
        begins_twice = text[start - 1 : start] == "{"
        if read := _decoded(text, start):
            value, position = read
            doubled: list[Any] = [value] if begins_twice and text.startswith("}", position) else []
        elif begins_twice and (read := _decoded(text[start:].replace("{{", "{").replace("}}", "}"), 0)):
            value, end = read
            attempts += 1
            position = start + sum(len(each[0]) for each in islice(_LETTERS.finditer(text, start), end))
            doubled = list(_objects(value))
        else:
            position, attempts = start + 1, attempts + 1
            continue
        for each in _objects(value):
            if strings := tuple(held for name, held in each if name == key and isinstance(held, str)):
                yield Found(each, strings, any(each is one for one in doubled))


def _decoded(text: str, start: int) -> tuple[Any, int] | None:
    """Decode the object that begins at `start`, and find its end; None where it is not well-formed."""
    try:
        return _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None


def _objects(value: Any) -> Iterator[_Pairs]:
    """Yield the objects of a decoded value, outer ones before inner ones."""
    left = [value]
    while left:
        each = left.pop()
        if isinstance(each, _Pairs):
            yield each
            left += [held for _, held in reversed(each)]
        elif isinstance(each, list):
            left += reversed(each)


class DoubledKeyError(ValueError):
    """An object names a key twice, so that nobody knows which value is meant."""


def decode_once(text: str) -> Any:
    """Decode JSON. Raises DoubledKeyError where an object names a key twice, ValueError where it is none."""
    return _STRICT_DECODER.decode(text)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        left = dict(fields)
        twice = next(name for name, _ in pairs if left.pop(name, _Pairs) is _Pairs)
        raise DoubledKeyError(f"it names {twice!r} twice in one object")
    return fields


_STRICT_DECODER = json.JSONDecoder(object_pairs_hook=_once)  # `json.loads` would make one for each text


def json_object(text: str) -> dict[str, Any] | None:
    """Decode a text that is one JSON object; None for any other text, and for numbers and depths beyond reason."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def objects(value: Any) -> list[Mapping[str, Any]]:
    """Select the JSON objects in a list; none where it is no list."""
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, Sequence) else []


def mapping(value: Any) -> Mapping[str, Any]:
    """Return the value where it is a JSON object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


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
