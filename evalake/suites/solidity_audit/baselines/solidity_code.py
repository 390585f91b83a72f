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
        if token.startswith("/"):
            return _NOT_NEWLINE.sub(" ", token)
        if not strings:
            return token
        return token[0] + _NOT_NEWLINE.sub(" ", token[1:-1]) + (token[-1] if len(token) > 1 else "")

    return _TOKEN.sub(replaced, source)


def functions(code: str) -> list[Function]:
    """List the functions of blanked code that have a body, in order. An unfinished one ends at the end of the code."""
    listed: list[Function] = []
    line_starts = [0, *(match.end() for match in re.finditer("\n", code))]
    ends_of_header = [match.start() for match in re.finditer("[{;]", code)]
    closing = _closing_braces(code)
    end = -1
    for match in _FUNCTION.finditer(code):
        if match.start() < end:
            continue  # Solidity has no functions within functions
        place = bisect_left(ends_of_header, match.end())
        if place == len(ends_of_header) or code[ends_of_header[place]] == ";":
            continue
        brace = ends_of_header[place]
        end = closing.get(brace, len(code))
        kind = match[1] or match[3]
        listed.append(
            Function(
                name=match[2] or ("fallback" if kind == "function" else kind),
                kind="fallback" if kind == "function" and not match[2] else kind,
                header=code[match.start() : brace],
                body=code[brace + 1 : end],
                first_line=bisect_right(line_starts, match.start()),
                last_line=bisect_right(line_starts, min(end, len(code) - 1)),
                body_line=bisect_right(line_starts, brace),
            )
        )
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
