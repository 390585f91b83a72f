"""Turns shell text into the small model, with tree-sitter's bash grammar.

Tree-sitter recovers from errors, so a script with a syntax error still gives its readable commands; the script is then
marked incomplete and the caller adds the lexical view.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from suites.command_guard.baselines.shell_patterns.model import Assignment, Command, Redirect, Script, Word
from suites.command_guard.baselines.shell_patterns.printing import printed, unescaped

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

MAX_BYTES: Final = 8_192
"""Longer text is not given to the grammar: its error recovery is quadratic on hostile input."""
MAX_DEPTH: Final = 48
MAX_COMMANDS: Final = 400
MAX_EXPANSION: Final = 16_384
"""Upper bound on a word after variables were filled in, so that doubling assignments stay harmless."""
MAX_EXPANDED: Final = 65_536
"""Variables are filled in until their values come to this many characters in total."""

_BRACES: Final = re.compile(r"([^{}\s]*+)\{([^{},]*+,[^{}]*+)\}([^{}\s]*+)")
_MAX_UPSTREAM: Final = 6
_of_thread: Final = threading.local()
_ONLY_ASCII: Final = bytes.maketrans(bytes(range(128, 256)), b"." * 128)
"""Translation of non-ASCII bytes, on which the grammar's scanner can crash (tree-sitter-bash issue 337), to one that is
part of a word and of no name, as they are for bash. Offsets stay, and words are read from the source itself."""
_FIELD_SEPARATOR: Final = "\x00"
"""The mark where an unquoted expansion is to be split."""
_BLANKS: Final = " \t\n"
_LIST: Final = re.compile(r'"\$(?:@|\{@\}|\{\w+\[@\]\})"')
"""Expansions that are split even inside quotes."""
_COMPOUND: Final = frozenset(
    {"subshell", "compound_statement", "if_statement", "while_statement", "for_statement", "case_statement"}
)


def parse(text: str, variables: dict[str, str] | None = None) -> Script:
    """Parse `text` into simple commands; `variables` are known shell variables and collect the literal assignments."""
    source = text.encode("utf-8", "replace")
    if len(source) > MAX_BYTES:
        return Script((), complete=False)
    root = _parser().parse(source.translate(_ONLY_ASCII)).root_node
    reader = _Reader(source, {} if variables is None else variables)
    reader.statement(root, 0)
    return Script(tuple(reader.found), complete=reader.complete and not root.has_error)


def _parser() -> Parser:
    """Get this thread's parser: two threads that parse with one would write into each other's memory."""
    if not hasattr(_of_thread, "parser"):
        # Imported here so that the package costs nothing until a command is judged.
        import tree_sitter_bash
        from tree_sitter import Language, Parser

        _of_thread.parser = Parser(Language(tree_sitter_bash.language()))
    parser: Parser = _of_thread.parser
    return parser


class _Reader:
    """Walks one syntax tree; `found` collects every command in reading order."""

    def __init__(self, source: bytes, variables: dict[str, str]) -> None:
        self.source = source
        self.variables = variables
        self.found: list[Command] = []
        self.complete = True
        self.expanded = 0

    # ---- statements -------------------------------------------------------------------------------------------

    def statement(self, node: Node, depth: int) -> list[int]:
        """Read a statement; return the positions of the commands whose streams are its own."""
        if depth > MAX_DEPTH or len(self.found) >= MAX_COMMANDS:
            self.complete = False
            return []
        match node.type:
            case "command" | "declaration_command" | "unset_command" | "test_command":
                return [self._command(node, depth)]
            case "variable_assignment":
                return [self._add(Command(assignments=(self._assignment(node, depth),)))]
            case "pipeline":
                return self._pipeline(node.named_children, [], depth)
            case "redirected_statement":
                return self._redirected(node, depth)
            case "file_redirect":
                return [self._add(Command(redirects=(self._redirect(node, depth),)))]
            case "for_statement":
                self._bind_loop(node, depth)
            case "comment" | "heredoc_body" | "string_content":
                return []
        return [position for child in node.named_children for position in self.statement(child, depth + 1)]

    def _add(self, command: Command) -> int:
        self.found.append(command)
        return len(self.found) - 1

    def _pipeline(self, stages: Iterable[Node], before: list[int], depth: int) -> list[int]:
        streams: list[int] = list(before)
        for stage in stages:
            positions = self.statement(stage, depth + 1)
            upstream = tuple(self.found[position] for position in streams[-_MAX_UPSTREAM:])
            for position in positions:
                command = self.found[position]
                self.found[position] = replace(command, upstream=upstream + command.upstream)
            streams = streams + positions
        return streams

    def _redirected(self, node: Node, depth: int) -> list[int]:
        redirects: list[Redirect] = []
        stdin: str | None = None
        positions: list[int] = []
        tails: list[Node] = []
        compound = False
        for child in node.named_children:
            if child.type == "file_redirect":
                redirects.append(self._redirect(child, depth))
            elif child.type == "herestring_redirect":
                stdin = "".join(self._word(part, depth).text for part in child.named_children)
            elif child.type == "heredoc_redirect":
                stdin, more, more_tails = self._heredoc(child, depth)
                redirects += more
                tails += more_tails
            else:
                compound = child.type in _COMPOUND
                positions += self.statement(child, depth + 1)
        if not positions:
            positions = [self._add(Command())]
        for position in positions if compound else positions[-1:]:
            command = self.found[position]
            text = command.stdin if stdin is None else stdin
            self.found[position] = replace(command, redirects=command.redirects + tuple(redirects), stdin=text)
        return self._pipeline(tails, positions, depth) if tails else positions

    def _heredoc(self, node: Node, depth: int) -> tuple[str, list[Redirect], list[Node]]:
        """Read body text, redirections and further pipeline stages, all of which the grammar puts below the `<<`."""
        body = ""
        redirects: list[Redirect] = []
        tails: list[Node] = []
        for child in node.named_children:
            if child.type == "heredoc_body":
                body = self._raw(child)
                for part in child.named_children:
                    if part.type == "command_substitution":
                        self.statement(part, depth + 1)
            elif child.type == "file_redirect":
                redirects.append(self._redirect(child, depth))
            elif child.type == "pipeline":
                tails += child.named_children
            elif child.type in {"command", "list"}:
                self.statement(child, depth + 1)
        return body, redirects, tails

    def _bind_loop(self, node: Node, depth: int) -> None:
        variable = node.child_by_field_name("variable")
        values = [self._word(child, depth).text for child in node.children_by_field_name("value")]
        if variable is not None and values:
            self.variables[self._raw(variable)] = " ".join(values)[:MAX_EXPANSION]

    # ---- commands ---------------------------------------------------------------------------------------------

    def _command(self, node: Node, depth: int) -> int:
        words: list[Word] = []
        assignments: list[Assignment] = []
        redirects: list[Redirect] = []
        stdin: str | None = None
        if node.type in {"declaration_command", "unset_command"} and node.children:
            words.append(Word(self._raw(node.children[0])))
        if node.type == "test_command":
            words.append(Word("[["))
        end = -1
        for child in node.named_children:
            glued = child.start_byte == end and self.source[end : end + 1] == b"`"
            end = child.end_byte
            match child.type:
                case "variable_assignment":
                    assignments.append(self._assignment(child, depth))
                case "file_redirect":
                    redirects.append(self._redirect(child, depth))
                case "herestring_redirect":
                    stdin = "".join(self._word(part, depth).text for part in child.named_children)
                case _:
                    more = self._words(child, depth)
                    if glued and words and more:  # the grammar cuts a word before a backquote
                        last = words.pop()
                        more[0] = Word(last.text + more[0].text, last.inner + more[0].inner)
                    words += more
        command = Command(tuple(words), tuple(assignments), tuple(redirects), stdin)
        if command.texts[:2] == ("set", "--"):
            self._bind_parameters(command.texts[2:])
        return self._add(command)

    def _bind_parameters(self, values: tuple[str, ...]) -> None:
        self.variables["@"] = self.variables["*"] = " ".join(values)[:MAX_EXPANSION]
        for number, value in enumerate(values[:9], start=1):
            self.variables[str(number)] = value[:MAX_EXPANSION]

    def _assignment(self, node: Node, depth: int) -> Assignment:
        name = node.child_by_field_name("name")
        value = node.child_by_field_name("value")
        word = Word("") if value is None else self._value(value, depth)
        label = "" if name is None else self._raw(name)
        if not word.inner:
            self.variables[label] = word.text[:MAX_EXPANSION]
        return Assignment(label, word)

    def _value(self, node: Node, depth: int) -> Word:
        if node.type != "array":
            return self._word(node, depth)
        elements = [self._word(element, depth) for element in node.named_children]
        inner = tuple(command for element in elements for command in element.inner)
        return Word(" ".join(element.text for element in elements), inner)

    def _redirect(self, node: Node, depth: int) -> Redirect:
        # What stands before the target is descriptor or operator; so is the error that the grammar makes of `<>`.
        named = [child for child in node.named_children if child.type not in {"file_descriptor", "ERROR"}]
        target = self._word(named[0], depth) if named else Word("")
        operator = "".join(self._raw(child) for child in node.children if child not in named)
        return Redirect(operator.lstrip("0123456789"), target)

    # ---- words ------------------------------------------------------------------------------------------------

    def _words(self, node: Node, depth: int) -> list[Word]:
        """Read a word, or several where an unquoted expansion or `{a,b}` makes them."""
        before = len(self.found)
        text = self._text(node, depth)[:MAX_EXPANSION]
        inner = tuple(self.found[before:])
        parts = [part for part in text.split(_FIELD_SEPARATOR) if part] if _FIELD_SEPARATOR in text else [text]
        if node.type in {"concatenation", "word", "command_name"} and "{" in self._raw(node):
            parts = [piece for part in parts for piece in expand_braces(part)]
        return [Word(part, inner) for part in parts]

    def _word(self, node: Node, depth: int) -> Word:
        """Read one word where the shell does not split: a redirection's target, an assignment's value."""
        before = len(self.found)
        text = self._text(node, depth)[:MAX_EXPANSION].replace(_FIELD_SEPARATOR, " ")
        return Word(text, tuple(self.found[before:]))

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
                text = self._joined(node, depth)[1:-1]
                return text if _LIST.fullmatch(self._raw(node)) else text.replace(_FIELD_SEPARATOR, " ")
            case "string_content":
                return re.sub(r'\\(["$`\\])|\\\n', r"\1", self._raw(node))
            case "word" | "extglob_pattern" | "regex":
                return re.sub(r"\\\n|\\(.)", r"\1", self._raw(node))
            case "simple_expansion" | "expansion":
                return self._expansion(node, depth)
            case "command_substitution":
                commands = self.statement(node, depth + 1)
                output = printed(self.found[commands[0]]) if len(commands) == 1 else None
                return self._raw(node) if output is None else output.replace(" ", _FIELD_SEPARATOR)
            case "process_substitution":
                self.statement(node, depth + 1)
                return self._raw(node)
            case _ if node.named_child_count:
                return self._joined(node, depth)
            case _:
                return self._raw(node)

    def _joined(self, node: Node, depth: int) -> str:
        # The grammar leaves blanks between the parts of a string out of the tree: take them from the source.
        pieces: list[str] = []
        position = node.start_byte
        for child in node.children:
            pieces.append(self.source[position : child.start_byte].decode("utf-8", "replace"))
            pieces.append(self._text(child, depth + 1))
            position = child.end_byte
        pieces.append(self.source[position : node.end_byte].decode("utf-8", "replace"))
        return "".join(pieces)[:MAX_EXPANSION]

    def _expansion(self, node: Node, depth: int) -> str:
        named = node.named_children
        first = named[0] if named else node
        if first.type == "subscript":  # an element of an array: take the whole array
            first = first.named_children[0]
        name = self._raw(first) if first.type in {"variable_name", "special_variable_name"} else ""
        if name == "IFS":
            return _FIELD_SEPARATOR
        if name in self.variables and self.expanded < MAX_EXPANDED:
            self.expanded += len(self.variables[name])
            blanks = self.variables.get("IFS") or _BLANKS
            return self.variables[name].translate(str.maketrans(blanks, _FIELD_SEPARATOR * len(blanks)))
        if name in {"@", "*"} and node.parent is not None and node.parent.type == "concatenation":
            return ""  # empty without parameters, so that its neighbours are one word
        if node.type == "expansion" and len(named) > 1:
            default = self._text(named[1], depth + 1)
            if any(child.type in {":-", "-", ":=", "="} for child in node.children):
                return default
        return self._raw(node)

    def _raw(self, node: Node) -> str:
        return self.source[node.start_byte : node.end_byte].decode("utf-8", "replace")


def expand_braces(text: str) -> list[str]:
    """Expand `a{b,c}d` as the shell does, one level and at most 64 words."""
    match = _BRACES.fullmatch(text)
    if match is None:
        return [text]
    return [match.group(1) + middle + match.group(3) for middle in match.group(2).split(",")[:64]]
