"""Find the JSON objects that a reply is about, also where their form is broken, in bounded time.

Models leave trailing commas and comments in JSON, line breaks in strings, other quotes. json-repair reads such objects,
and what was mended is said. It would also close what was cut off, keep one of two fields of a name, and read some
escapes otherwise than JSON. So an object with an open end is none, and while it is repaired, its keys are numbered and
its strings are kept apart: each of them comes back, or there is no object.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import json_repair

from evalake.sdk.json_in_text import refuse_constant, split_thinking

LONGEST_REPLY = 400_000  # characters; what lies beyond is not read
DEEPEST_WRAPPER = 2  # objects around the one that is wanted
LONGEST_REPAIRED = 100_000  # characters of a broken object
MOST_ATTEMPTS = 100  # braces from which reading is tried in vain, and repairs
DEEPEST = 100  # objects and lists within each other that are repaired

AROUND = "text around the object"
WRAPPER = "an object around it"
NAMES = "the spelling of names"

Pairs = Sequence[tuple[str, Any]]

_START = re.compile(r"""\{(?=\s*+(?:["'“”}/#]|\w++\s*+:))""")
_TOKEN = re.compile(
    r"""(?P<string>"(?:[^"\\]|\\.)*+(?P<closed>")?)(?P<key>\s*+:)?"""
    r"""|(?P<single>'(?:[^'\\\n]|\\.)*+')(?P<single_key>\s*+:)"""
    r"""|(?P<comment>//[^\n]*+|/\*(?:.*?\*/|.*+)|\#[^\n]*+)"""
    r"""|(?P<word>\b[A-Za-z_]\w*+)(?P<word_key>\s*+:)"""
    r"""|(?P<trailing>,(?=\s*+[}\]]))|(?P<left_out>\.\.\.|…)|(?P<bracket>[{}\[\]])""",
    re.DOTALL,
)
_CLOSING = {"{": "}", "[": "]"}
_MARK = "ꙮ"  # a letter that no reply has; a number between two of them tells keys of one name apart
_MARKED = re.compile(rf"{_MARK}(\d+){_MARK}")
_STRING = re.compile(rf"{_MARK}(\d+)s{_MARK}")  # stands for a string of the object
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NO_WORD = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Found:
    """An object of a reply, its names as `name_of` spells them, and what was mended for it, in words."""

    value: Mapping[str, Any]
    mended: tuple[str, ...] = ()


def find_object(text: str, keys: Collection[str]) -> Found | None:
    """Find the first JSON object of a reply that has one of the `keys`, outside of its thinking; None without one."""
    return next(_objects(text, keys, dict), None)


def find_all(text: str, keys: Collection[str]) -> tuple[list[Found], list[str]]:
    """Find the JSON objects of a reply that have one of the `keys`, each once, outside of its thinking.

    An object with a key that stands twice in it is two objects: with the first value and with the last. The second list
    names such keys of any object in the reply.
    """
    found: dict[str, Found] = {}
    repeated: dict[str, None] = {}

    def last_of_each(pairs: Pairs) -> dict[str, Any]:
        counted = Counter(name for name, _ in pairs)
        repeated.update(dict.fromkeys(name for name, times in counted.items() if times > 1))
        return dict(pairs)

    def first_of_each(pairs: Pairs) -> dict[str, Any]:
        return dict(reversed(pairs))

    for of_each in (last_of_each, first_of_each):
        for each in _objects(text, keys, of_each):
            found.setdefault(json.dumps(each.value, sort_keys=True), each)
    return list(found.values()), list(repeated)


def name_of(key: str) -> str:
    """Spell a key as fields are named: `findingId`, `Finding ID` and `FINDING-ID` are `finding_id`."""
    return _NO_WORD.sub("_", _HUMP.sub("_", key.strip()).casefold()).strip("_") or key


def _objects(text: str, keys: Collection[str], of_each: Callable[[Pairs], dict[str, Any]]) -> Iterator[Found]:
    answer = split_thinking(text[:LONGEST_REPLY])[0]
    position, attempts = 0, 0
    while attempts < MOST_ATTEMPTS and (match := _START.search(answer, position)):
        respelled: set[str] = set()

        def named(pairs: Pairs, respelled: set[str] = respelled) -> dict[str, Any]:
            ours = [(name_of(key), value) for key, value in pairs]
            respelled.update(key for (key, _), (our, _) in zip(pairs, ours, strict=True) if key != our)
            return of_each(ours)

        read = _well_formed(answer, match.start(), named) or _mended(answer, match.start(), keys, named)
        if read is None:
            position, attempts = match.start() + 1, attempts + 1
            continue
        value, end, mended = read
        attempts += bool(mended)
        around = [AROUND] if answer[: match.start()].strip() or answer[end:].strip() else []
        spelled = [NAMES] if respelled else []
        for depth, each in _with_keys(value, keys, DEEPEST_WRAPPER):
            wrapped = [WRAPPER] if depth < DEEPEST_WRAPPER else []
            yield Found(each, (*mended, *around, *wrapped, *spelled))
        position = end


def _with_keys(value: Any, keys: Collection[str], depth: int) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the object, if it has one of the keys; else those in it, to a depth."""
    if isinstance(value, dict) and any(key in value for key in keys):
        yield depth, value
    elif depth and isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _with_keys(part, keys, depth if isinstance(value, list) else depth - 1)


def _well_formed(
    answer: str, start: int, named: Callable[[Pairs], dict[str, Any]]
) -> tuple[Any, int, tuple[str, ...]] | None:
    """Read the object that begins at `start` as JSON, in which NaN and infinity are nothing."""
    decoder = json.JSONDecoder(parse_constant=refuse_constant, object_pairs_hook=named)
    try:
        value, end = decoder.raw_decode(answer, start)
    except (ValueError, RecursionError):
        return None
    return value, end, ()


def _mended(
    answer: str, start: int, keys: Collection[str], named: Callable[[Pairs], dict[str, Any]]
) -> tuple[Any, int, tuple[str, ...]] | None:
    """Repair the object that begins at `start`; None where it has none of the keys, or more than its form is wrong."""
    marked = _marked(answer, start)
    if marked is None or not {name_of(_MARKED.sub("", key)) for key in marked.keys} & {*keys}:
        return None
    try:
        value = json_repair.repair_json(marked.text, return_objects=True, skip_json_loads=True, strict=True)
    except (ValueError, RecursionError):
        return None
    back = _Unmarked(marked.strings, named)
    unmarked = back.value(value)
    whole = sorted(back.keys) == sorted(marked.keys) and sorted(back.strings) == list(range(len(marked.strings)))
    return (unmarked, marked.end, marked.mended) if whole else None


@dataclass(frozen=True, slots=True)
class _Marked:
    """The text of an object whose keys are numbered, where it ends in the answer, and what there is to mend."""

    text: str
    end: int
    keys: list[str]  # with their marks
    strings: list[str]  # as they are meant, in the order of their marks
    mended: tuple[str, ...]


def _marked(answer: str, start: int) -> _Marked | None:
    """Mark the keys of the object that begins at `start`; None where it does not end, or leaves something out."""
    if _MARK in answer:
        return None
    open_brackets: list[str] = []
    parts: list[str] = []
    keys: list[str] = []
    strings: list[str] = []
    flaws: dict[str, None] = {}
    position = start
    for token in _TOKEN.finditer(answer, start, start + LONGEST_REPAIRED):
        kind = token.lastgroup
        if kind in ("key", "single_key", "word_key"):
            before = "closed" if kind == "key" else kind.removesuffix("_key")
            quote = 0 if kind == "word_key" else 1
            end, mark = token.end(before) - quote, f"{_MARK}{len(keys)}{_MARK}"
            parts += [answer[position:end], mark]
            keys.append(answer[token.start() + quote : end] + mark)
            position = end
        if kind == "string" and (meant := _meant(token["string"])) is not None:
            parts += [answer[position : token.start()], f'"{_MARK}{len(strings)}s{_MARK}"']
            strings.append(meant)
            position = token.end()
        if kind == "left_out" or (token["string"] is not None and token["closed"] is None):
            return None
        flaws |= dict.fromkeys(_flaws(token))
        if kind == "bracket" and not _follow(open_brackets, token.group(0)):
            return None
        if not open_brackets:
            parts.append(answer[position : token.end()])
            return _Marked("".join(parts), token.end(), keys, strings, tuple(flaws) or ("the syntax of JSON",))
    return None


def _flaws(token: re.Match[str]) -> Iterator[str]:
    if token["comment"]:
        yield "a comment"
    elif token["trailing"]:
        yield "a comma too many"
    elif token["string"] and "\n" in token["string"]:
        yield "a line break in a string"
    elif token["single"] or token["word"]:
        yield "quotes of names"


def _follow(open_brackets: list[str], bracket: str) -> bool:
    """Open or close a bracket; false where it closes another one than is open, or nests too deeply."""
    if bracket in _CLOSING:
        open_brackets.append(bracket)
        return len(open_brackets) <= DEEPEST
    return _CLOSING[open_brackets.pop()] == bracket


def _meant(string: str) -> str | None:
    """Decode a JSON string, in which line breaks may stand; None where json-repair has to read it."""
    try:
        meant: str = json.loads(string, strict=False)
    except ValueError:
        return None
    return meant


class _Unmarked:
    """Puts keys and strings back in the place of their marks, and notes which of them came back."""

    def __init__(self, strings: Sequence[str], named: Callable[[Pairs], dict[str, Any]]) -> None:
        self.keys: list[str] = []
        self.strings: list[int] = []
        self._meant, self._named = strings, named

    def value(self, value: Any) -> Any:
        """Put them back into a value."""
        if isinstance(value, dict):
            self.keys += [key for key in value if _MARKED.search(key)]
            return self._named([(self._text(_MARKED.sub("", key)), self.value(part)) for key, part in value.items()])
        if isinstance(value, list):
            return [self.value(part) for part in value]
        return self._text(_MARKED.sub("", value)) if isinstance(value, str) else value

    def _text(self, text: str) -> str:
        def meant(mark: re.Match[str]) -> str:
            self.strings.append(int(mark[1]))
            return self._meant[int(mark[1])]

        return _STRING.sub(meant, _whole(text))


def _whole(text: str) -> str:
    """Join the halves of characters, which json-repair leaves as they are escaped."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
