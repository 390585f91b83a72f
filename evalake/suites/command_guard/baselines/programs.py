"""Knowledge of the guard, from the tables of `programs.toml`, and how it finds programs and options in a command."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import zip_longest
from typing import Final, Literal

from evalake.core.files import tables_beside
from evalake.suites.command_guard.baselines.parse import Command

Action = Literal["ALLOW", "WARN", "BLOCK"]

_TABLES: Final = tables_beside(__file__, "programs.toml")


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


_LANGUAGES: Final = [(each["programs"].split(), each["runs"], "scripted" in each) for each in _TABLES["languages"]]
NAMES: Final[Mapping[str, frozenset[str]]] = {
    **{name: frozenset(text.split()) for name, text in _TABLES["programs"].items()},
    "scripted": frozenset(program for programs, _, scripted in _LANGUAGES if scripted for program in programs),
    "coded": frozenset(program for programs, *_ in _LANGUAGES for program in programs),
}
"""Lists of programs, options and variables."""
OPTIONS: Final = {kind: _rows(text) for kind, text in _TABLES["options"].items()}
WRAPPERS: Final = [
    (frozenset(names.split()), tuple(phrase.split()), frozenset(valued.split()), skipped)
    for names, phrase, valued, skipped in _TABLES["wrappers"]["rows"]
]
"""Programs that run the rest of their line: words that make them do so, options with a value, and words to skip."""
PATTERNS: Final = {name: _pattern(text) for name, text in _TABLES["patterns"].items()}
RULES: Final[Mapping[str, tuple[Action, float, str]]] = _TABLES["rules"]
"""Each rule's action, the confidence in it, and the reason, for the program that it is found at."""
LOOKS: Final[Mapping[str, list[tuple[list[str], str]]]] = {
    place: [(patterns.split(), rule) for patterns, rule in rules.items()] for place, rules in _TABLES["looks"].items()
}
"""Where a text stands: patterns that it holds together, and the rule that they make."""
DANGEROUS: Final = [(_pattern(text), what) for what, text in _TABLES["dangerous"].items()]
RUNS: Final = {program: _pattern(f"(?m){runs}") for programs, runs, _ in _LANGUAGES for program in programs}
"""Programs with a language of their own, and what in their code runs commands."""


def is_one(name: str, *lists: str) -> bool:
    """Tell whether a name is in one of the lists."""
    return any(name in NAMES[each] for each in lists)


def found(pattern: str, text: str) -> bool:
    """Tell whether a text holds a pattern."""
    return PATTERNS[pattern].search(text) is not None


@lru_cache(maxsize=4096)  # bounded, for there is no end to the names in commands
def _common_name(name: str) -> str:
    bare = re.sub(r"-?\d[\d.]*$", "", name)
    versioned = not is_one(name, "coded") and is_one(bare, "coded", "shells")
    return "sh" if name in {"$SHELL", "${SHELL}", "$BASH", "$0"} else bare if versioned else name


def program(command: Command) -> str:
    """Find the program's common name: without folder and, for interpreters, without version."""
    name = command.path.rpartition("/")[2]
    return _common_name(name) if len(name) < 64 else name


def option_values(arguments: Sequence[str], options: frozenset[str]) -> Iterator[str]:
    """Yield the values of the given options, as `-o v`, `-ov`, `-xo v`, `--opt v` or `--opt=v`."""
    for argument, following in zip_longest(arguments, arguments[1:]) if options else ():
        head, equals, tail = argument.partition("=")
        bundled = len(argument) < 8 and argument[1:].isalnum() and f"-{argument[-1]}" in options
        if equals and head in options and len(head) > 2:
            yield tail
        elif argument not in options and argument[:2] in options and argument[:1] == "-":
            yield argument[2:]
        elif following is not None and (argument in options or (argument[:1] == "-" and bundled)):
            yield following


def any_of(commands: Iterable[Command], *lists: str) -> bool:
    """Tell whether one of some commands is of a program in one of the lists."""
    return any(is_one(program(command), *lists) for command in commands)


def operand_places(arguments: Sequence[str], valued: frozenset[str]) -> Iterator[int]:
    """Yield the places of the arguments that are neither options nor the values of the options in `valued`."""
    pairs = enumerate(zip(arguments, ("", *arguments), strict=False))
    return (n for n, (text, before) in pairs if before not in valued and (text[:1] not in {"-", "+"} or text == "-"))


def operands(arguments: Sequence[str], valued: frozenset[str] = frozenset()) -> list[str]:
    """List the arguments that are neither options nor the values of the options in `valued`."""
    return [arguments[place] for place in operand_places(arguments, valued)]
