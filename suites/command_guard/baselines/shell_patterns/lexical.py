"""A conservative lexical view of text that does not parse: commands cut at every operator, quotes removed.

It never fails and is linear in the text. What stands in substitutions and here-documents shows up as commands of
its own, which is the safe side.
"""

from __future__ import annotations

import re
from typing import Final

from suites.command_guard.baselines.shell_patterns.model import Assignment, Command, Redirect, Script, Word
from suites.command_guard.baselines.shell_patterns.parse import expand_braces

MAX_CHARACTERS: Final = 200_000
"""Of longer text, only this many characters are looked at: half from the start, half from the end."""
MAX_COMMANDS: Final = 600

_TOKEN: Final = re.compile(
    r"(?P<end>[;|\n()`]|[{}](?=[\s;)]|$)|&(?!>))"
    r"|(?P<redirect>\d?(?:&>>?|>>|>&|>\||<>|>|<))"
    r"|(?P<word>(?:\{[^\s{}'\",]*+,[^\s{}'\"]*+\}|'[^']*'|\"[^\"]*\"|\\.|[^\s;|&(){}`<>])+)"
    r"|\s",
    re.DOTALL,
)
_QUOTES: Final = re.compile(r"'([^']*)'|\"([^\"]*)\"|\\(.)", re.DOTALL)
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*(?==)")


def clip(text: str) -> str:
    """Cut the text to the part that is looked at."""
    half = MAX_CHARACTERS // 2
    return text if len(text) <= MAX_CHARACTERS else text[:half] + "\n" + text[-half:]


def lexical(text: str) -> Script:
    """Split text into commands as far as a tokenizer can; the script is incomplete only beyond the limits."""
    commands: list[Command] = []
    words: list[Word] = []
    assignments: list[Assignment] = []
    redirects: list[Redirect] = []
    operator = ""
    upstream: tuple[Command, ...] = ()

    def finish(separator: str) -> None:
        nonlocal operator, upstream
        if words or assignments or redirects:
            command = Command(tuple(words), tuple(assignments), tuple(redirects), upstream=upstream)
            commands.append(command)
            upstream = (*upstream, command)[-4:] if separator == "|" else ()
            words.clear()
            assignments.clear()
            redirects.clear()
        operator = ""

    for token in _TOKEN.finditer(clip(text)):
        if len(commands) >= MAX_COMMANDS:
            return Script(tuple(commands), complete=False)
        if token["end"]:
            finish(token["end"])
        elif token["redirect"]:
            operator = token["redirect"].lstrip("0123456789")
        elif token["word"]:
            plain = _QUOTES.sub(lambda match: match[1] or match[2] or match[3] or "", token["word"])
            name = _ASSIGNMENT.match(plain)
            if operator:
                redirects.append(Redirect(operator, Word(plain)))
                operator = ""
            elif name and not words:
                assignments.append(Assignment(name[0], Word(plain[name.end() + 1 :])))
            else:
                words += [Word(part) for part in expand_braces(plain)]
    finish("\n")
    return Script(tuple(commands), complete=len(text) <= MAX_CHARACTERS)
