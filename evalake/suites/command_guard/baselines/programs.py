"""What the guard knows, read from the tables of `programs.toml`: programs, options, wrappers, code and paths."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

Action = Literal["ALLOW", "WARN", "BLOCK"]

_TABLES: Final[Mapping[str, Any]] = tomllib.loads(Path(__file__).with_name("programs.toml").read_text(encoding="utf-8"))


def _rows(text: str) -> Mapping[str, frozenset[str]]:
    """Read rows of `programs: options`, cut by `;` or the end of a line."""
    rows = (row.partition(":") for row in text.replace("\n", ";").split(";") if row.strip())
    return {program: frozenset(options.split()) for programs, _, options in rows for program in programs.split()}


def _pattern(text: str) -> re.Pattern[str]:
    """Compile a pattern: its lines are one, and parts of other patterns stand in it by name."""
    text = text.replace("\n", "")
    for name in ("start", "home", "calls"):
        text = text.replace(f"<{name}>", _TABLES["parts"][name].replace("\n", ""))
    return re.compile(text)


class Wrapper(NamedTuple):
    """How a wrapper's line is read: what makes it one, its options with a value, and how many words come first."""

    programs: frozenset[str]
    phrase: tuple[str, ...]
    values: frozenset[str]
    operands: int
    kinds: frozenset[str]


def _wrapper(row: str) -> Wrapper:
    programs, phrase, values, operands, kinds = (part.split() for part in row.split("|"))
    return Wrapper(frozenset(programs), tuple(phrase), frozenset(values), int(operands[0]), frozenset(kinds))


_LANGUAGES: Final = [(each["programs"].split(), each["runs"], "scripted" in each) for each in _TABLES["languages"]]
NAMES: Final[Mapping[str, frozenset[str]]] = {
    **{name: frozenset(text.split()) for name, text in _TABLES["programs"].items()},
    "scripted": frozenset(program for programs, _, scripted in _LANGUAGES if scripted for program in programs),
    "coded": frozenset(program for programs, *_ in _LANGUAGES for program in programs),
}
"""Lists of programs, options and variables."""
OPTIONS: Final = {kind: _rows(text) for kind, text in _TABLES["options"].items()}
WRAPPERS: Final = tuple(map(_wrapper, _TABLES["wrappers"]["rows"].strip().splitlines()))
PATTERNS: Final = {name: _pattern(text) for name, text in _TABLES["patterns"].items()}
RULES: Final[Mapping[str, tuple[Action, float, str]]] = _TABLES["rules"]
"""Each rule's action, the confidence in it, and the reason, for the program that it is found at."""
DANGEROUS: Final = [(_pattern(text), what) for what, text in _TABLES["dangerous"].items()]
RUNS: Final = {program: _pattern(f"(?m){runs}") for programs, runs, _ in _LANGUAGES for program in programs}
"""Programs with a language of their own, and what in their code runs commands."""


def is_one(name: str, *lists: str) -> bool:
    """Tell whether a name is in one of the lists."""
    return any(name in NAMES[each] for each in lists)


def found(pattern: str, text: str) -> bool:
    """Tell whether a text holds a pattern."""
    return PATTERNS[pattern].search(text) is not None
