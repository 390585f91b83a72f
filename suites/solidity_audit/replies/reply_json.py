"""Find the JSON object that a reply is about, in bounded time, whatever else the reply says."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from suites.base.json_in_text import refuse_constant
from suites.base.thinking import split_thinking

LONGEST_REPLY = 400_000  # characters; what lies beyond is not read
DEEPEST_WRAPPER = 2  # objects around the one that is wanted
MOST_ATTEMPTS = 40  # braces from which reading is tried


def find_object(text: str, keys: Collection[str]) -> Mapping[str, Any] | None:
    """Find the first JSON object of a reply that has one of the `keys`, outside of its thinking; None without one."""
    return next(_objects(text, keys, dict, depth=0), None)


def find_all(text: str, keys: Collection[str]) -> tuple[list[Mapping[str, Any]], list[str]]:
    """Find the JSON objects of a reply that have one of the `keys`, each once, outside of its thinking.

    An object with a key that stands twice in it is two objects: with the first value and with the last. The second list
    names such keys of any object in the reply.
    """
    found: dict[str, Mapping[str, Any]] = {}
    repeated: dict[str, None] = {}

    def last_of_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value: dict[str, Any] = {}
        for name, part in pairs:
            if name in value:
                repeated[name] = None
            value[name] = part
        return value

    for pairs_hook in (last_of_each, _first_of_each):
        for value in _objects(text, keys, pairs_hook, depth=DEEPEST_WRAPPER):
            found.setdefault(json.dumps(value, sort_keys=True), value)
    return list(found.values()), list(repeated)


def _first_of_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return dict(reversed(pairs))


def _objects(
    text: str, keys: Collection[str], pairs_hook: Callable[[list[tuple[str, Any]]], dict[str, Any]], depth: int
) -> Iterator[Mapping[str, Any]]:
    """Yield objects with one of the keys; of one without, those in it to a depth. NaN and infinity are no JSON."""
    answer, _ = split_thinking(text[:LONGEST_REPLY])
    decoder = json.JSONDecoder(parse_constant=refuse_constant, object_pairs_hook=pairs_hook)
    position = 0
    for _ in range(MOST_ATTEMPTS):
        position = answer.find("{", position)
        if position < 0:
            return
        try:
            value, end = decoder.raw_decode(answer, position)
        except (ValueError, RecursionError):
            position += 1
            continue
        yield from _with_keys(value, keys, depth)
        position = end


def _with_keys(value: Any, keys: Collection[str], depth: int) -> Iterator[Mapping[str, Any]]:
    if not isinstance(value, dict):
        return
    if any(key in value for key in keys):
        yield value
    elif depth:
        for part in value.values():
            yield from _with_keys(part, keys, depth - 1)
