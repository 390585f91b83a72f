"""Contracts as a parser rewrites them: without comments, or with neutral names as well; what they do stays the same.

A source `no_comments:SOURCE` or `renamed:SOURCE` gives the samples of SOURCE so rewritten, each with its base.
"""

import re
import warnings
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from threading import local
from typing import TYPE_CHECKING, Final

from evalake.core.errors import SourceError
from evalake.core.files import tables_beside
from evalake.sdk import Dataset, Sample, Skipped
from evalake.sdk.sample import unit_of
from evalake.sdk.sources import as_payload
from evalake.suites.solidity_audit.sources.sample_folders import ORIGINAL
from evalake.suites.solidity_audit.truth import as_sample, truth_of

if TYPE_CHECKING:
    from tree_sitter import Node

NO_COMMENTS, RENAMED = "no_comments", "renamed"
REWRITES = (NO_COMMENTS, RENAMED)
NOT_PARSED, NOTHING_TO_DO = "the Solidity parser cannot read the contract", "nothing in the contract is rewritten"

_of_thread = local()
_WORD = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*+")
_SIGNATURE = re.compile(rf"({_WORD.pattern})\(")
_IN_PROSE = re.compile(rf"{_WORD.pattern}(?=\()|[A-Za-z_$][a-z0-9]*+(?:[A-Z_$0-9][A-Za-z0-9_$]*+)+")
_NO_DECLARATION = ("member_expression", "struct_field_assignment", "call_struct_argument", "import_directive")
_TABLES: Final = tables_beside(__file__, "rewrite.toml")


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A contract as rewritten, and how to undo it.

    Attributes:
        lines: For each line of the text the line of the original that it comes from, both from 1.
        names: The names that were replaced, old to new.
    """

    text: str
    lines: tuple[int, ...]
    names: Mapping[str, str]

    def line_of(self, line: int) -> int:
        """Map a line of the original; one that was taken out is the next that was kept."""
        return min(bisect_left(self.lines, line), len(self.lines) - 1) + 1

    def in_prose(self, text: str | None) -> str | None:
        """Replace the names in a text, where their form shows that they are names of the code."""
        return text and _IN_PROSE.sub(lambda match: self.names.get(match[0], match[0]), text)


def rewrite(source: str, how: str) -> Rewritten:
    """Rewrite a contract. Raises SourceError with the line that the parser cannot read."""
    text, lines = _without_comments(source)
    if how == NO_COMMENTS:
        return Rewritten(text, lines, {})
    given = text.encode()
    root = _parsed(given)
    names = _neutral_names(root, text)
    parts, end = [], 0
    for node in _leaves(root):
        if _is_name(node) and (new := names.get(_text(node))):
            parts += [given[end : node.start_byte], new.encode()]
            end = node.end_byte
    return Rewritten(b"".join([*parts, given[end:]]).decode(), lines, names)


def tree(source: str) -> str:
    """Write the syntax tree of a contract with its tokens, without comments. Raises SourceError as `rewrite` does."""
    leaves = (f"{each.type} {_text(each)}" for each in _leaves(_parsed(source.encode())) if each.type != "comment")
    return "\n".join(leaves)


def rewritten(dataset: Dataset, how: str) -> Dataset:
    """Rewrite the samples of a dataset; those that cannot be are left out by reason."""
    samples, skipped = [], list(dataset.skipped)
    for sample in dataset.samples:
        try:
            new = rewrite(sample.input, how)
        except (SourceError, UnicodeEncodeError) as error:
            skipped.append(Skipped(f"{sample.sample_id} ({error})", NOT_PARSED, as_payload(sample.input), sample.label))
            continue
        if new.text == sample.input:
            skipped.append(Skipped(sample.sample_id, NOTHING_TO_DO))
            continue
        samples.append(_rewritten_sample(sample, new, how))
    return Dataset(f"{dataset.name}-{how}", tuple(samples), tuple(skipped), dataset.notes)


def _rewritten_sample(sample: Sample, new: Rewritten, how: str) -> Sample:
    truth = truth_of(sample)
    cluster = f"/{unit_of(sample.dataset, sample.cluster or sample.sample_id)}"
    known = truth.model_copy(
        update={
            "vulnerable_lines": sorted({new.line_of(line) for line in truth.vulnerable_lines}),
            "vulnerable_functions": [
                _WORD.sub(lambda match: new.names.get(match[0], match[0]), name) for name in truth.vulnerable_functions
            ],
            **{name: new.in_prose(getattr(truth, name)) for name in ("root_cause", "attack_scenario", "fix")},
            "base": truth.base or sample.sample_id,
            "transformation": how if truth.transformation in (None, ORIGINAL) else f"{truth.transformation}_{how}",
        }
    )
    made = as_sample(sample.dataset, f"{sample.sample_id}/{how}", new.text, known, cluster, sample.note)
    return replace(made, dataset=f"{sample.dataset}-{how}")


def _without_comments(source: str) -> tuple[str, tuple[int, ...]]:
    """Take out comments, and the lines that held nothing else; return the text, and each line's number before."""
    given = source.replace("\r\n", "\n").replace("\r", "\n").encode()
    parts, end, touched = [], 0, set[int]()
    for node in _leaves(_parsed(given)):
        if node.type == "comment":
            newlines = given[node.start_byte : node.end_byte].count(b"\n")
            parts += [given[end : node.start_byte], b"\n" * newlines or b" "]
            end = node.end_byte
            touched |= {*range(node.start_point.row, node.end_point.row + 1)}
    lines = b"".join([*parts, given[end:]]).decode().split("\n")
    kept = {
        number: line.rstrip() if number in touched else line
        for number, line in enumerate(lines)
        if number not in touched or line.strip()
    }
    return "\n".join(kept.values()), tuple(number + 1 for number in kept)


def _neutral_names(root: "Node", text: str) -> dict[str, str]:
    """Choose a name for each that the contract declares; what strings or others' interfaces spell stays."""
    declared: dict[str, str] = {}
    words, kept = _TABLES["words"], {*_TABLES["language"].split()}
    for node in _leaves(root):
        kept.update(_SIGNATURE.findall(_text(node)) if "string" in node.type else ())
        parent = node.parent
        if not _is_name(node) or parent is None or not _declares(parent, node):
            kept.update([_text(node)] if parent is not None and parent.type == "import_directive" else ())
            continue
        declared.setdefault(_text(node), words.get(parent.type if parent.type in words else node.type, "value"))
        if parent.type == "function_definition" and (_within(parent, "interface_declaration") or _overrides(parent)):
            kept.add(_text(node))
    taken, counts, names = {*_WORD.findall(text)}, dict[str, int](), dict[str, str]()
    for name, word in declared.items():
        if name in kept:
            continue
        counts[word] = counts.get(word, 0) + 1
        while f"{word}{counts[word]}" in taken:
            counts[word] += 1
        names[name] = f"{word}{counts[word]}"
    return names


def _declares(parent: "Node", node: "Node") -> bool:
    if node.type == "enum_value" or parent.type == "enum_value":
        return True
    field = next((parent.field_name_for_child(i) for i, each in enumerate(parent.children) if each == node), None)
    return parent.type not in _NO_DECLARATION and field in ("name", "key_identifier", "value_identifier")


def _is_name(node: "Node") -> bool:
    return "identifier" in node.type or node.type == "enum_value"


def _overrides(function: "Node") -> bool:
    return any(each.type == "override_specifier" for each in function.children)


def _within(node: "Node", kind: str) -> bool:
    while (parent := node.parent) is not None:
        if parent.type == kind:
            return True
        node = parent
    return False


def _leaves(node: "Node") -> "Iterator[Node]":
    """Yield tokens, strings and comments in order; without recursion, for expressions nest deeply."""
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if each.child_count and each.type not in ("comment", "string", "string_literal"):
            waiting += reversed(each.children)
        else:
            yield each


def _text(node: "Node") -> str:
    return (node.text or b"").decode()


def _parsed(source: bytes) -> "Node":
    if not hasattr(_of_thread, "parser"):
        import tree_sitter_solidity
        from tree_sitter import Language, Parser

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # the grammar gives its address as a number
            _of_thread.parser = Parser(Language(tree_sitter_solidity.language()))
    root: Node = _of_thread.parser.parse(source).root_node
    if root.has_error:
        raise SourceError(f"line {_first_error(root)}")
    return root


def _first_error(root: "Node") -> int:
    node = root
    while not (node.is_error or node.is_missing):
        inner = next((each for each in node.children if each.has_error or each.is_missing), None)
        if inner is None:
            break
        node = inner
    return int(node.start_point.row) + 1
