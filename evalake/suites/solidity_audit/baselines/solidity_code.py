"""Solidity source as text: comments blanked without moving a position, functions found by their braces.

No compiler: the source may be of any version, cut off, or no Solidity at all. Everything is linear in its length.
"""

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""//[^\n]*+ | /\*(?:[^*]|\*(?!/))*+(?:\*/)? | "(?:[^"\\\n]|\\.)*+"? | '(?:[^'\\\n]|\\.)*+'?""", re.VERBOSE
)
_NOT_NEWLINE = re.compile(r"[^\n]")
_FUNCTION = re.compile(
    r"\b(?:(function|modifier)[ \t\n\r]++([A-Za-z_$][\w$]*+)"
    r"|(constructor|fallback|receive|function)(?=[ \t\n\r]*+\())"
)


@dataclass(frozen=True, slots=True)
class Function:
    """A function: its name, its header (up to the brace), its body (between the braces), and its lines from 1."""

    name: str
    kind: str  # function, modifier, constructor, fallback or receive
    header: str
    body: str
    first_line: int
    last_line: int
    body_line: int  # the line on which the body begins


def blank(source: str, strings: bool = False) -> str:
    """Replace every comment, and where wanted every string's content, by blanks of the same length."""

    def replaced(match: re.Match[str]) -> str:
        token = match[0]
        if token[0] == "/":
            return _NOT_NEWLINE.sub(" ", token)
        inside = _NOT_NEWLINE.sub(" ", token[1:-1]) if strings else token[1:-1]
        return token[0] + inside + token[1:][-1:]

    return _TOKEN.sub(replaced, source)


def functions(code: str) -> list[Function]:
    """List the functions of blanked code that have a body, in order. An unfinished one ends at the end of the code."""
    listed: list[Function] = []
    line_starts = [0, *(match.end() for match in re.finditer("\n", code))]
    ends_of_header = [match.start() for match in re.finditer("[{;]", code)]
    closing, end = _closing_braces(code), -1
    for match in _FUNCTION.finditer(code):
        place = bisect_left(ends_of_header, match.end())
        # Solidity has no functions within functions
        if match.start() < end or place == len(ends_of_header) or code[brace := ends_of_header[place]] == ";":
            continue
        end = closing.get(brace, len(code))
        kind = match[1] or ("fallback" if match[3] == "function" else match[3])
        first, last, body = (bisect_right(line_starts, at) for at in (match.start(), min(end, len(code) - 1), brace))
        header = code[match.start() : brace]
        listed.append(Function(match[2] or kind, kind, header, code[brace + 1 : end], first, last, body))
    return listed


def _closing_braces(code: str) -> dict[int, int]:
    """Map the position of each opening brace to the position of its closing brace."""
    pairs: dict[int, int] = {}
    waiting: list[int] = []
    for match in re.finditer(r"[{}]", code):
        if match[0] == "{":
            waiting.append(match.start())
        elif waiting:
            pairs[waiting.pop()] = match.start()
    return pairs
