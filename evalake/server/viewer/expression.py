"""Filter expressions, like `verdict = "ALLOW" and cost > 0.01`, compiled to Polars over a fixed list of columns.

    filter      terms joined by `or`; `and` binds tighter, `not` tightest; parentheses group
    term        COLUMN OPERATOR VALUE, COLUMN in (VALUE, …), COLUMN is [not] null, or a yes-or-no COLUMN alone
    operators   = != < <= > >= for numbers; = != ~ !~ for text, where ~ is "contains", in any case; = != for yes or no

A value is a number, "text" or 'text', true or false. A backslash in text keeps the next character. Columns and
keywords are read in any case.
"""

import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Literal, NamedTuple, NoReturn

import polars as pl

from evalake.core.errors import did_you_mean
from evalake.server.settings import WrongQueryError

LONGEST = 1000  # characters
DEEPEST = 20  # parentheses and `not` within each other
MOST_TERMS = 100

Kind = Literal["text", "number", "yes or no"]
_OPERATORS: dict[str, Callable[[pl.Expr, pl.Expr], pl.Expr]] = {
    **{"=": operator.eq, "!=": operator.ne, "<": operator.lt},
    **{"<=": operator.le, ">": operator.gt, ">=": operator.ge},
}
_ALLOWED: dict[Kind, tuple[str, ...]] = {
    "text": ("=", "!=", "~", "!~", "in", "is"),
    "number": (*_OPERATORS, "in", "is"),
    "yes or no": ("=", "!=", "is"),
}
_TOKEN = re.compile(
    r"""(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<number>-?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w.]))"""
    r"""|(?P<word>[A-Za-z_]\w*)|(?P<sign>!=|!~|<=|>=|[=<>~(),])""",
    re.DOTALL | re.ASCII,
)
_KEYWORDS = frozenset(("and", "or", "not", "in", "is", "null", "true", "false"))


class Column(NamedTuple):
    """What a name of a filter stands for."""

    expression: pl.Expr
    kind: Kind


class _Token(NamedTuple):
    kind: str  # text, number, word, sign, end, or what begins no token: stray, unclosed
    text: str
    at: int  # its first character, from 1


def compile_filter(text: str, columns: Mapping[str, Column]) -> pl.Expr:
    """Compile a filter. Raises WrongQueryError, which says at which character it stops making sense."""
    if len(text) > LONGEST:
        raise WrongQueryError(f"the filter has {len(text)} characters: at most {LONGEST} are allowed")
    return _Parser(text, columns).whole()


def holds(column: pl.Expr, text: str) -> pl.Expr:
    """Tell whether a column holds a text, small and capital letters alike."""
    if text.isascii():  # which is searched several times as fast
        return column.str.contains_any([text], ascii_case_insensitive=True)
    return column.str.to_lowercase().str.contains(text.lower(), literal=True)


class _Parser:
    """Reads tokens from left to right; each method reads one part of the grammar."""

    def __init__(self, text: str, columns: Mapping[str, Column]) -> None:
        self._columns = columns
        self._names = {name.lower(): name for name in columns}
        self._tokens = list(_tokens(text))
        self._next = self._depth = self._terms = 0

    def whole(self) -> pl.Expr:
        found = self._either()
        if self._token.kind != "end":
            self._refuse("expected `and`, `or` or the end")
        return found

    @property
    def _token(self) -> _Token:
        return self._tokens[self._next]

    def _refuse(self, expected: str, token: _Token | None = None) -> NoReturn:
        raise _wrong(expected, token or self._token)

    def _take(self) -> _Token:
        token = self._token
        self._next += token.kind not in ("end", "stray", "unclosed")
        return token

    def _takes(self, *words: str) -> str | None:
        """Read a keyword or a sign, where one of these is next."""
        word = self._token.text.lower() if self._token.kind in ("word", "sign") else ""
        return self._take().text.lower() if word in words else None

    def _either(self) -> pl.Expr:
        found = self._both()
        while self._takes("or"):
            found = found | self._both()
        return found

    def _both(self) -> pl.Expr:
        found = self._one()
        while self._takes("and"):
            found = found & self._one()
        return found

    def _one(self) -> pl.Expr:
        start = self._token
        if (opening := self._takes("not", "(")) is None:
            return self._term()
        self._depth += 1
        if self._depth > DEEPEST:
            self._refuse(f"more than {DEEPEST} levels of parentheses and `not`", start)
        found = ~self._one() if opening == "not" else self._either()
        if opening == "(" and not self._takes(")"):
            self._refuse("expected `)`")
        self._depth -= 1
        return found

    def _term(self) -> pl.Expr:
        token = self._take()
        name = self._names.get(token.text.lower(), "") if token.kind == "word" else ""
        if not name:
            is_wrong_name = token.kind == "word" and token.text.lower() not in _KEYWORDS
            what = "no such column: there are" if is_wrong_name else "expected a column:"
            near = did_you_mean(token.text.lower(), self._names) if is_wrong_name else ""
            self._refuse(f"{what} {', '.join(self._columns)}{near}", token)
        column = self._columns[name]
        self._terms += 1
        if self._terms > MOST_TERMS:
            self._refuse(f"more than {MOST_TERMS} conditions", token)
        sign = self._token
        chosen = self._takes("in", "is", "!~", "~", *_OPERATORS)
        if chosen is None and column.kind == "yes or no":
            return column.expression
        if chosen not in _ALLOWED[column.kind]:
            self._refuse(f"{name} is {column.kind}: expected {', '.join(_ALLOWED[column.kind])}", sign)
        return self._compared(name, column, chosen)

    def _compared(self, name: str, column: Column, sign: str) -> pl.Expr:
        left = column.expression
        if sign == "is":
            negated = self._takes("not")
            if not self._takes("null"):
                self._refuse("expected `null`")
            return left.is_not_null() if negated else left.is_null()
        if sign == "in":
            values = self._list(name, column.kind)
            return (left.cast(pl.Float64) if column.kind == "number" else left).is_in(values)
        value = self._value(name, column.kind)
        if sign in ("~", "!~"):
            contains = holds(left, str(value))
            return contains if sign == "~" else ~contains
        return _OPERATORS[sign](left, pl.lit(value))

    def _list(self, name: str, kind: Kind) -> list[str | float | bool]:
        if not self._takes("("):
            self._refuse("expected `(`")
        values = [self._value(name, kind)]
        while self._takes(","):
            values.append(self._value(name, kind))
        if not self._takes(")"):
            self._refuse("expected `,` or `)`")
        return values

    def _value(self, name: str, kind: Kind) -> str | float | bool:
        token = self._take()
        if kind == "text" and token.kind == "text":
            return re.sub(r"\\(.)", r"\1", token.text[1:-1], flags=re.DOTALL)
        if kind == "number" and token.kind == "number" and math.isfinite(number := float(token.text)):
            return number
        if kind == "yes or no" and token.text.lower() in ("true", "false"):
            return token.text.lower() == "true"
        if token.text.lower() == "null":
            self._refuse(f"write `{name} is null`", token)
        wanted = {"text": 'text in quotes, like "gpt"', "number": "a number, like 0.01", "yes or no": "true or false"}
        raise _wrong(f"{name} is {kind}: expected {wanted[kind]}", token)


def _tokens(text: str) -> Iterator[_Token]:
    """Split a text up to its end, or to the first character that begins no token."""
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
        elif match := _TOKEN.match(text, at):
            yield _Token(str(match.lastgroup), match[0], at + 1)
            at = match.end()
        else:
            yield _Token("unclosed" if text[at] in "\"'" else "stray", text[at], at + 1)
            return
    yield _Token("end", "", at + 1)


def _wrong(expected: str, token: _Token) -> WrongQueryError:
    where = "at its end" if token.kind == "end" else f"at character {token.at} ({token.text[:40]!r})"
    why = "the quotation mark is never closed" if token.kind == "unclosed" else expected
    return WrongQueryError(f"the filter is wrong {where}: {why}")
