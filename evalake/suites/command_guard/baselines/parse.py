"""Turns shell text into simple commands, with tree-sitter's bash grammar; text that it cannot read is cut at operators.

A word is what the shell would pass on, as far as the text tells: quotes removed, known variables filled in, the output
of `echo` and `printf` in place of their substitution.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, takewhile
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

MAX_BYTES: Final = 8_192  # longer text is not given to the grammar: its error recovery is quadratic on hostile input
MAX_DEPTH: Final = 48
MAX_COMMANDS: Final = 600
MAX_WORD: Final = 16_384  # characters, so that doubling assignments stay harmless
MAX_EXPANDED: Final = 65_536  # characters that variables are replaced by, in total
MAX_CHARACTERS: Final = 200_000  # of longer text only the start and the end are looked at

_SPLIT: Final = "\x00"  # where an unquoted expansion is to be split
_ONLY_ASCII: Final = bytes.maketrans(bytes(range(128, 256)), b"." * 128)
"""Non-ASCII bytes, on which the grammar's scanner can crash (tree-sitter-bash issue 337), become a part of a word."""
_OPERATOR: Final = re.compile(r"[;|&\n()`]+")
_WORD: Final = re.compile(r"(?:'[^']*'|\"[^\"]*\"|\\.|[^\s'\"\\])+")
_REDIRECT: Final = re.compile(r"([<>]{1,3})\s*([^\s<>]+)")
_QUOTES: Final = re.compile(r"'([^']*)'|\"([^\"]*)\"|\\(.)", re.DOTALL)
_ASSIGNMENT: Final = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|[0-7]{1,4}|.)", re.DOTALL)
_CONVERSION: Final = re.compile(r"%(%|-?\d{0,4}[sbqdiuxXc])")
_CONTROLS: Final = dict(zip("ntrabfveE", "\n\t\r\a\b\f\v\x1b\x1b", strict=True))
_of_thread: Final = threading.local()


@dataclass(frozen=True, slots=True)
class Command:
    """One simple command: its words and redirections, what it reads, and the commands in its substitutions."""

    words: tuple[str, ...] = ()
    assignments: tuple[tuple[str, str], ...] = ()
    redirects: tuple[tuple[str, str], ...] = ()  # operator and target
    stdin: str | None = None  # text of a here-document or here-string
    upstream: tuple[Command, ...] = ()  # earlier stages of the pipeline in order, each after its substitutions
    inner: tuple[Command, ...] = ()

    @property
    def path(self) -> str:
        """The program as written; "" for a command of assignments or redirections only."""
        return self.words[0] if self.words else ""

    @property
    def arguments(self) -> tuple[str, ...]:
        """The words after the program."""
        return self.words[1:]


def assignment(word: str) -> tuple[str, str] | None:
    """Read `NAME=value`; None for another word."""
    match = _ASSIGNMENT.fullmatch(word)
    return (match[1], match[2]) if match else None


def unescaped(text: str) -> str:
    r"""Replace escapes like `\n`, `\x41` and `\101` by what they stand for, as in `$'…'`."""

    def character(match: re.Match[str]) -> str:
        code = match[1]
        if code[0] in "xu" and len(code) > 1:
            return chr(int(code[1:], 16))
        return chr(int(code, 8) & 0xFF) if code[0] in "01234567" else _CONTROLS.get(code, code)

    return _ESCAPE.sub(character, text)


def printed(command: Command) -> str | None:
    """Compute what `echo` or `printf` prints; None for other programs."""
    words = [text for text in command.arguments if text == "-" or not text.startswith("-")]
    if command.path == "printf" and words:
        values = iter(words[1:])
        first = _CONVERSION.sub(lambda match: "%" if match[1] == "%" else next(values, ""), words[0])
        words = [first, *values]
    return unescaped(" ".join(words)) if command.path in {"echo", "printf"} else None


def parse(text: str, variables: dict[str, str]) -> tuple[list[Command], bool]:
    """List the commands of a text in reading order, and tell whether the limits let all of it be seen.

    `variables` are the known shell variables; literal assignments are added to them.
    """
    source = text.encode("utf-8", "replace")
    if len(source) > MAX_BYTES:
        return lexical(text)
    root = _parser().parse(source.translate(_ONLY_ASCII)).root_node
    reader = _Reader(source, variables)
    reader.statement(root, Command(), 0)
    if reader.complete and not root.has_error:
        return reader.found, True
    further, complete = lexical(text)
    return reader.found + further, complete


def _parser() -> Parser:
    """Get this thread's parser: two threads that parse with one would write into each other's memory."""
    if not hasattr(_of_thread, "parser"):
        import tree_sitter_bash
        from tree_sitter import Language, Parser

        _of_thread.parser = Parser(Language(tree_sitter_bash.language()))
    parser: Parser = _of_thread.parser
    return parser


def lexical(text: str) -> tuple[list[Command], bool]:
    """Cut text into commands at every operator, linear in its length; the second value is False beyond the limits."""
    half = MAX_CHARACTERS // 2
    pieces = _OPERATOR.split(text if len(text) <= MAX_CHARACTERS else f"{text[:half]}\n{text[-half:]}")
    complete, commands = len(text) <= MAX_CHARACTERS and len(pieces) <= MAX_COMMANDS, []
    for piece in pieces[:MAX_COMMANDS]:
        found = [match[0] for match in islice(_WORD.finditer(_REDIRECT.sub(" ", piece)), MAX_COMMANDS)]
        redirects = tuple(_REDIRECT.findall(piece)[:MAX_COMMANDS])
        words = [_QUOTES.sub(lambda match: match[1] or match[2] or match[3] or "", word) for word in found]
        assignments = tuple(filter(None, takewhile(bool, map(assignment, words))))
        commands.append(Command(tuple(words[len(assignments) :]), assignments, redirects))
        complete = complete and MAX_COMMANDS not in (len(found), len(redirects))
    return commands, complete


class _Reader:
    """Walks one syntax tree; `found` collects every command in reading order."""

    def __init__(self, source: bytes, variables: dict[str, str]) -> None:
        self.source, self.variables = source, variables
        self.found: list[Command] = []
        self.complete, self.expanded = True, 0

    def statement(self, node: Node, around: Command, depth: int) -> None:
        """Read a statement. Its commands have the redirections, the input and the upstream of `around`."""
        if depth > MAX_DEPTH or len(self.found) >= MAX_COMMANDS:
            self.complete = False
            return
        match node.type:
            case "command" | "declaration_command" | "unset_command" | "test_command" | "variable_assignment":
                self._command(node, around, depth)
                return
            case "redirected_statement" | "file_redirect":
                self._redirected(node, around, depth)
                return
            case "comment" | "heredoc_body" | "string_content":
                return
            case "for_statement":
                values = " ".join(self._word(child, depth) for child in node.children_by_field_name("value"))
                if (variable := node.child_by_field_name("variable")) is not None and values:
                    self.variables[self._raw(variable)] = values[:MAX_WORD]
        start = len(self.found)
        for child in node.named_children:
            first = node.type in {"pipeline", "list"} and child != node.named_children[-1]
            upstream = (*around.upstream, *(self.found[start:] if node.type == "pipeline" else ()))[-6:]
            self.statement(child, replace(Command() if first else around, upstream=upstream), depth + 1)

    def _with_streams(self, nodes: Sequence[Node], around: Command, depth: int) -> Command:
        """Add redirections, here-documents and here-strings to a command."""
        for node in nodes:
            match node.type:
                case "file_redirect":
                    # What stands before the target is descriptor or operator; so is the grammar's error for `<>`
                    named = [child for child in node.named_children if child.type not in {"file_descriptor", "ERROR"}]
                    operator = "".join(self._raw(child) for child in node.children if child not in named)
                    target = self._word(named[0], depth) if named else ""
                    redirect = (operator.lstrip("0123456789"), target)
                    around = replace(around, redirects=(*around.redirects, redirect))
                case "herestring_redirect":
                    around = replace(around, stdin="".join(self._word(part, depth) for part in node.named_children))
                case "heredoc_redirect":
                    around = self._with_streams(node.named_children, around, depth)
                case "heredoc_body":
                    around = replace(around, stdin=self._raw(node))
        return around

    def _redirected(self, node: Node, outer: Command, depth: int) -> None:
        """Read a statement with its redirections; the grammar puts what follows a here-document below its `<<`."""
        start, parts = len(self.found), [node] if node.type == "file_redirect" else node.named_children
        around = self._with_streams(parts, outer, depth)
        body = [part for part in parts if not part.type.endswith("_redirect")]
        for part in body:
            self.statement(part, around, depth + 1)
        if not body:
            self.found.append(around)
        fed = replace(outer, upstream=tuple(self.found[start:])[-6:])
        for part in chain.from_iterable(part.named_children for part in parts if part.type == "heredoc_redirect"):
            for child in part.named_children if part.type in {"pipeline", "heredoc_body"} else [part]:
                self.statement(child, fed, depth + 1)

    def _command(self, node: Node, around: Command, depth: int) -> None:
        before = len(self.found)
        children = [node] if node.type == "variable_assignment" else node.named_children
        words = [self._raw(node.children[0])] if node.type in {"declaration_command", "unset_command"} else []
        words += ["[["] if node.type == "test_command" else []
        assignments: list[tuple[str, str]] = []
        for child in children:
            if child.type == "variable_assignment":
                assignments.append(self._assignment(child, depth))
            elif not child.type.endswith("_redirect"):
                words += self._words(child, depth)
        whole = self._with_streams(children, around, depth)
        inner = tuple(self.found[before:])
        self.found.append(replace(whole, words=tuple(words), assignments=tuple(assignments), inner=inner))

    def _assignment(self, node: Node, depth: int) -> tuple[str, str]:
        before, name, value = len(self.found), node.child_by_field_name("name"), node.child_by_field_name("value")
        parts = [] if value is None else value.named_children if value.type == "array" else [value]
        text = " ".join(self._word(part, depth) for part in parts)
        label = "" if name is None else self._raw(name)
        if len(self.found) == before:
            self.variables[label] = text[:MAX_WORD]
        return label, text

    def _words(self, node: Node, depth: int) -> list[str]:
        """Read a word, or several where an unquoted expansion makes them."""
        text = self._text(node, depth)[:MAX_WORD]
        return [part for part in text.split(_SPLIT) if part] if _SPLIT in text else [text]

    def _word(self, node: Node, depth: int) -> str:
        """Read one word where the shell does not split: a redirection's target, an assignment's value."""
        return self._text(node, depth)[:MAX_WORD].replace(_SPLIT, " ")

    def _text(self, node: Node, depth: int) -> str:
        if depth > MAX_DEPTH:
            self.complete = False
            return self._raw(node)
        match node.type:
            case "raw_string":
                return self._raw(node)[1:-1]
            case "ansi_c_string":
                return unescaped(self._raw(node)[2:-1])
            case "string":
                return self._joined(node, depth)[1:-1].replace(_SPLIT, " ")
            case "string_content":
                return re.sub(r'\\(["$`\\])|\\\n', r"\1", self._raw(node))
            case "word" | "extglob_pattern" | "regex":
                return re.sub(r"\\\n|\\(.)", r"\1", self._raw(node))
            case "simple_expansion" | "expansion":
                return self._expansion(node, depth)
            case "command_substitution" | "process_substitution" as kind:
                before = len(self.found)
                for child in node.named_children:
                    self.statement(child, Command(), depth + 1)
                only = len(self.found) == before + 1 and kind == "command_substitution"
                output = printed(self.found[-1]) if only else None
                return self._raw(node) if output is None else output.replace(" ", _SPLIT)
            case _:
                return self._joined(node, depth) if node.named_child_count else self._raw(node)

    def _joined(self, node: Node, depth: int) -> str:
        # The grammar leaves blanks between the parts of a string out of the tree: take them from the source
        pieces, position = [], node.start_byte
        for child in node.children:
            pieces += [self._between(position, child.start_byte), self._text(child, depth + 1)]
            position = child.end_byte
        return "".join((*pieces, self._between(position, node.end_byte)))[:MAX_WORD]

    def _expansion(self, node: Node, depth: int) -> str:
        named = node.named_children
        first = named[0] if named else node
        if first.type == "subscript":  # an element of an array: take the whole array
            first = first.named_children[0]
        name = self._raw(first) if first.type in {"variable_name", "special_variable_name"} else ""
        if name == "IFS":
            return _SPLIT
        if name in self.variables and self.expanded < MAX_EXPANDED:
            self.expanded += len(self.variables[name])
            return re.sub(r"\s", _SPLIT, self.variables[name])
        if len(named) > 1 and any(child.type in {":-", "-", ":=", "="} for child in node.children):
            return self._text(named[1], depth + 1)
        return self._raw(node)

    def _raw(self, node: Node) -> str:
        return self._between(node.start_byte, node.end_byte)

    def _between(self, start: int, end: int) -> str:
        return self.source[start:end].decode("utf-8", "replace")
