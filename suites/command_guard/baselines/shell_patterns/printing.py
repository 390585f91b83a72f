"""What `echo` and `printf` print, and what backslashes stand for in what they are given."""

from __future__ import annotations

import re
from typing import Final

from suites.command_guard.baselines.shell_patterns.model import Command

_CONTROLS: Final = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "v": "\v",
    "e": "\x1b",
    "E": "\x1b",
}
_ESCAPE: Final = re.compile(r"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|[0-7]{1,4}|.)", re.DOTALL)
_CONVERSION: Final = re.compile(r"%(%|-?\d{0,4}[sbqdiuxXc])")


def unescaped(text: str) -> str:
    r"""Replace escapes such as `\n`, `\x41` and `\101` by what they stand for, as in `$'…'`."""
    return _ESCAPE.sub(_character, text)


def _character(match: re.Match[str]) -> str:
    code = match.group(1)
    if code[0] in "xu" and len(code) > 1:
        return chr(int(code[1:], 16))
    if code[0] in "01234567":
        return chr(int(code, 8) & 0xFF)
    return _CONTROLS.get(code, code)


def printed(command: Command) -> str | None:
    """Compute what the command prints, where its own words tell: for `echo` and `printf`; None for others."""
    words = [text for text in command.arguments if text == "-" or not text.startswith("-")]
    if command.name == "echo":
        return unescaped(" ".join(words))
    if command.name != "printf":
        return None
    values = iter(words[1:])
    text = _CONVERSION.sub(lambda match: "%" if match[1] == "%" else next(values, ""), words[0] if words else "")
    return unescaped(" ".join([text, *values]))
