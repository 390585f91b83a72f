"""Reading a command's arguments: program names, option values, operands, and the command behind a wrapper."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain, takewhile, zip_longest
from typing import Final

from suites.command_guard.baselines.shell_patterns.model import Assignment, Command, Word
from suites.command_guard.baselines.shell_patterns.printing import printed
from suites.command_guard.baselines.shell_patterns.rules import programs
from suites.command_guard.baselines.shell_patterns.rules.languages import INTERPRETERS
from suites.command_guard.baselines.shell_patterns.scope import MAX_TEXT

_VERSION: Final = re.compile(r"-?\d[\d.]*$")
_ASSIGNMENT: Final = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_FIND_RUNS: Final = frozenset({"-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"})
_FIND_NAMES: Final = frozenset({"-name", "-iname", "-path", "-wholename"})
_REPLACED: Final = frozenset({"-I", "--replace", "-i"})
_SEPARATOR: Final = re.compile(r"[\s\x00]+")
_MAX_LAYERS: Final = 12
_MAX_FED: Final = 64


@lru_cache(maxsize=4096)  # bounded, for there is no end to the names in commands
def _program(name: str) -> str:
    if name.startswith(("ld-linux", "ld-musl")):
        return "ld.so"
    if name in {"$SHELL", "${SHELL}", "$BASH", "$0"}:
        return "sh"
    bare = _VERSION.sub("", name)
    is_versioned = name not in INTERPRETERS and (bare in INTERPRETERS or bare in programs.SHELLS)
    return bare if is_versioned else name


def program(command: Command) -> str:
    """Find the program's common name: without folder and, for interpreters, without version."""
    return _program(command.name) if len(command.name) < 64 else command.name


def joined(command: Command) -> str:
    """Join the arguments into one text, cut where patterns would become slow."""
    return " ".join(command.arguments)[:MAX_TEXT]


def option_values(arguments: Sequence[str], options: frozenset[str]) -> Iterator[str]:
    """Yield the values of the given options, as `-o v`, `-ov`, `-xo v`, `--opt v` or `--opt=v`."""
    for argument, following in zip_longest(arguments, arguments[1:]):
        if argument in options:
            if following is not None:
                yield following
        elif argument.startswith("-"):
            head, equals, tail = argument.partition("=")
            if equals and head in options and len(head) > 2:
                yield tail
            elif argument[:2] in options:
                yield argument[2:]
            elif (
                following is not None and len(argument) < 8 and argument[1:].isalnum() and f"-{argument[-1]}" in options
            ):
                yield following
        elif argument[:1] == "+" and "+" in options:
            yield argument[1:]


def operands(arguments: Sequence[str], valued: frozenset[str] = frozenset()) -> list[str]:
    """List the arguments that are neither options nor the values of the options in `valued`."""
    values: list[str] = []
    left = iter(arguments)
    for argument in left:
        if argument == "--":
            return [*values, *left]
        if argument in valued:
            next(left, None)
        elif not argument.startswith("-") or argument == "-":
            values.append(argument)
    return values


def wrapper_of(command: Command) -> tuple[programs.Wrapper, int] | None:
    """Look up which wrapper the command is, and at which word its own arguments begin; None where it is none."""
    name = program(command)
    for known, parts, wrapper in programs.SUBCOMMAND_WRAPPERS:
        for start in range(1, min(len(command.texts), 6)) if name in known else ():
            if list(command.texts[start : start + len(parts)]) == parts:
                return wrapper, start + len(parts)
    wrapped = programs.WRAPPERS.get(name)
    return None if wrapped is None else (wrapped, 1)


def behind_wrapper(command: Command) -> Command | None:
    """Find the command that a wrapper runs; None when the command is no wrapper or nothing is left behind it."""
    if (wrapped := wrapper_of(command)) is None:
        return None
    wrapper, position = wrapped
    words = command.words
    left = wrapper.operands
    assignments: list[Assignment] = []
    if wrapper.marker:
        texts = command.texts
        position = texts.index(wrapper.marker) + 1 if wrapper.marker in texts else len(texts)
    while position < len(words):
        text = words[position].text
        if text == "--":
            position += 1
            break
        if text in programs.names(wrapper.values):
            position += 2
        elif text[:1] in {"-", "+"} and len(text) > 1:
            position += 1
        elif match := _ASSIGNMENT.fullmatch(text):
            assignments.append(Assignment(match[1], Word(match[2], words[position].inner)))
            position += 1
        elif left > 0:
            left -= 1
            position += 1
        else:
            break
    rest = words[position:]
    if not rest and not assignments:
        return None
    if wrapper.joins and len(rest) == 1:
        rest = (Word("sh"), Word("-c"), *rest)
    elif wrapper.joins or (len(rest) == 1 and " " in rest[0].text):
        rest = (Word("sh"), Word("-c"), Word(" ".join(word.text for word in rest)))
    return replace(command, words=rest, assignments=tuple(assignments))


def found_paths(command: Command) -> list[str]:
    """List the paths that `find ROOT … -name PATTERN` finds, as wildcards."""
    if command.name not in {"find", "gfind"}:
        return []
    texts = command.arguments
    roots = list(takewhile(lambda text: not text.startswith(("-", "(", "!")), texts))[:_MAX_LAYERS]
    return [f"{root.rstrip('/')}/{name}" for name in option_values(texts, _FIND_NAMES) for root in roots][:_MAX_LAYERS]


def _filled(command: Command, place: str, texts: Sequence[str]) -> Command:
    """Put each of `texts` where the placeholder stands in the command, also inside a word."""
    growth = sum(word.text.count(place) for word in command.words) * sum(len(text) for text in texts)
    if not 0 < growth <= MAX_TEXT:
        return command
    words = (
        [Word(word.text.replace(place, text), word.inner) for text in texts if place in word.text] or [word]
        for word in command.words
    )
    return replace(command, words=tuple(chain.from_iterable(words)))


def _fed_by_xargs(xargs: Command, run: Command) -> Command:
    """Build the command that `xargs` runs, with the arguments that it reads, as far as they can be known."""
    text = xargs.stdin
    if text is None and xargs.upstream:
        text = printed(xargs.upstream[-1])
    if text is not None:
        fed = _SEPARATOR.split(text.strip())[:_MAX_FED]
    else:
        fed = found_paths(xargs.upstream[-1]) if xargs.upstream else []
    if place := next(option_values(xargs.arguments, _REPLACED), ""):
        return _filled(run, place, fed)
    return replace(run, words=run.words + tuple(Word(text) for text in fed))


def run_by_find(command: Command) -> list[Command]:
    """List the commands that `find` or `fd` runs, after `-exec` and similar options."""
    if command.name not in {"find", "gfind", "fd", "fdfind"}:
        return []
    paths = found_paths(command)
    commands: list[Command] = []
    words = command.words
    position = 0
    while position < len(words) and len(commands) < _MAX_LAYERS:
        if words[position].text in _FIND_RUNS:
            start = position + 1
            while position < len(words) and words[position].text not in {";", "+", "\\;"}:
                position += 1
            run = Command(words[start:position], redirects=command.redirects)
            commands.append(_filled(run, "{}", paths))
        position += 1
    return commands


def layers(command: Command) -> list[Command]:
    """List the command and every command behind it: `sudo env X=1 timeout 5 ls` has four."""
    commands = [command]
    index = 0
    while index < len(commands) and len(commands) < _MAX_LAYERS:
        current = commands[index]
        if (behind := behind_wrapper(current)) is not None:
            commands.append(_fed_by_xargs(current, behind) if program(current) == "xargs" else behind)
        commands += run_by_find(current)
        index += 1
    return commands
