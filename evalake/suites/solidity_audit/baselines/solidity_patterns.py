"""The subject `baseline/solidity-patterns`: a static finder of known patterns, the bar that a model has to beat.

It reads blanked source text function by function, without types or data flow, and reports each place at which a rule
of `patterns.toml` finds its pattern without the guard that usually belongs to it.
"""

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

from evalake.models.request import BaselineRefusedError, Messages
from evalake.sdk.sample import read_delimited
from evalake.suites.solidity_audit.baselines.solidity_code import Function, blank, functions

LONGEST_SOURCE = 400_000  # characters; what lies beyond is not looked at
MOST_FINDINGS = 20
MOST_FUNCTIONS = 2_000

_TABLES: Final[Mapping[str, Any]] = tomllib.loads(Path(__file__).with_name("patterns.toml").read_text(encoding="utf-8"))
_P: Final = {name: re.compile(pattern.replace("\n", "")) for name, pattern in _TABLES["patterns"].items()}


@dataclass(frozen=True)
class Contract:
    """A source as rules read it: without comments, the content of strings, blank lines and runs of white space."""

    code: str
    lines: Sequence[int]  # the number in the source of each line of `code`

    @classmethod
    def of(cls, source: str) -> "Contract":
        """Build a contract from its source."""
        lines = (" ".join(line.split()) for line in blank(source, strings=True).split("\n"))
        kept = [(number, line) for number, line in enumerate(lines, start=1) if line]
        return cls("\n".join(line for _, line in kept), [number for number, _ in kept])

    @cached_property
    def blocks(self) -> list[Function]:
        """Its functions and modifiers."""
        return functions(self.code)

    @cached_property
    def state(self) -> frozenset[str]:
        """Names that look like state variables: declared on a line outside of every function."""
        inside = {line for block in self.blocks for line in range(block.first_line, block.last_line + 1)}
        outer = [line for number, line in enumerate(self.code.split("\n"), start=1) if number not in inside]
        declarations = _P["state_declaration"].finditer("\n".join(outer))
        return frozenset(match[1] for match in declarations if match[0].split()[0] not in _TABLES["not_types"])


Lines = tuple[int, ...]
Look = Callable[[Contract, Function], Lines]


class Rule(NamedTuple):
    """A pattern: what it is, how it is looked for in a function, and what is said where it is found."""

    type: str
    severity: str
    look: Look
    explanation: str
    fix: str


class PatternMatch(NamedTuple):
    """One place at which a pattern was found; `lines` are 1-based lines of the source."""

    rule: Rule
    function: str
    lines: Lines


def audit(source: str) -> list[PatternMatch]:
    """Find the patterns in a source, at most one of a kind for each function, the most severe first."""
    contract = Contract.of(source[:LONGEST_SOURCE])
    findings: list[PatternMatch] = []
    for function in contract.blocks[:MOST_FUNCTIONS]:
        for rule in _RULES if function.kind != "modifier" else ():
            if lines := tuple(contract.lines[line - 1] for line in rule.look(contract, function)):
                findings.append(PatternMatch(rule, function.name, lines))
    order = {"critical": 0, "high": 1, "medium": 2, "low": 3}
    return sorted(findings, key=lambda each: order[each.rule.severity])[:MOST_FINDINGS]


def _at(function: Function, *positions: int) -> Lines:
    """Compute the line numbers of positions in a function's body."""
    return tuple(sorted({function.body_line + function.body.count("\n", 0, position) for position in positions}))


def _first(function: Function, pattern: str) -> Lines:
    match = _P[pattern].search(function.body)
    return _at(function, match.end() - 1) if match else ()


def _is_open(function: Function) -> bool:
    """Tell whether anybody can call the function to change something."""
    closed = _P["hidden"].search(function.header) or _P["read_only"].search(function.header)
    return function.kind != "constructor" and not closed


def _is_guarded(function: Function) -> bool:
    return bool(_P["guard_name"].search(function.header) or _P["sender_check"].search(function.body))


def _state_writes(contract: Contract, body: str, start: int) -> Iterator[int]:
    return (match.start() for match in _P["write"].finditer(body, start) if match[1] in contract.state)


def _reentrancy(contract: Contract, function: Function) -> Lines:
    call = _P["value_call"].search(function.body)
    if call is None or not _is_open(function) or _P["lock"].search(function.header):
        return ()
    write = next(_state_writes(contract, function.body, call.end()), None)
    return () if write is None else _at(function, call.start(), write)


def _unchecked_result(_: Contract, function: Function) -> Lines:
    ignored = _P["ignored_result"].search(function.body)
    if ignored and not re.search(rf"\b{re.escape(ignored[1])}\b", function.body[ignored.end() :]):
        return _at(function, ignored.end() - 1)
    return _first(function, "low_call_statement") or _first(function, "token_statement")


def _weak_randomness(_: Contract, function: Function) -> Lines:
    body = function.body
    for match in _P["random_source"].finditer(body):
        before = body[max(0, match.start() - 300) : match.start()].rpartition(";")[2]
        statement = before + body[match.start() : match.end() + 300].partition(";")[0]
        if any(sign in statement for sign in ("keccak256", "sha3", "blockhash", "%")):
            return _at(function, match.start())
    return ()


def _overflow(contract: Contract, function: Function) -> Lines:
    if _P["old_compiler"].search(contract.code):
        return () if "SafeMath" in contract.code or not _is_open(function) else _first(function, "calculates")
    wrapping = (block for block in _P["unchecked_block"].finditer(function.body) if _P["wraps"].search(block[1]))
    block = next(wrapping, None)
    return () if block is None else _at(function, block.start(1))


def _delegatecall(_: Contract, function: Function) -> Lines:
    call = _P["delegate"].search(function.body)
    if call is None or not _is_open(function) or _is_guarded(function):
        return ()
    parameters = function.header[function.header.find("(") :]
    return _at(function, call.start()) if re.search(rf"\b{re.escape(call[1])}\b", parameters) else ()


def _uninitialized(_: Contract, function: Function) -> Lines:
    is_initializer = function.name.lower().startswith("init") and _is_open(function)
    once = _P["told_once"].search(function.body) or _is_guarded(function)
    return (function.first_line,) if is_initializer and not once else ()


def _denial(_: Contract, function: Function) -> Lines:
    for loop in _P["loop"].finditer(function.body):
        if ".length" in loop[1] and _P["push"].search(function.body, loop.end(), loop.end() + 1_000):
            return _at(function, loop.start())
    pays_others = "payable" in function.header and not _P["own_payment"].search(function.body)
    return _first(function, "payment") if pays_others else ()


def _declared(row: Mapping[str, Any]) -> Look:
    """Build the look that a rule's row declares."""

    def look(_: Contract, function: Function) -> Lines:
        guards = row.get("unless")
        named = all(
            _P[row[part]].search(getattr(function, part)) is not None for part in ("header", "name") if part in row
        )
        spared = (row.get("open") and not _is_open(function)) or (row.get("unguarded") and _is_guarded(function))
        spared = spared or (guards and all(_P[guard].search(function.body) for guard in guards))
        return _first(function, row["look"]) if named and not spared else ()

    return look


_LOOKS: Mapping[str, Look] = {
    "reentrancy": _reentrancy,
    "unchecked_return_value": _unchecked_result,
    "weak_randomness": _weak_randomness,
    "integer_overflow": _overflow,
    "delegatecall_injection": _delegatecall,
    "uninitialized_proxy": _uninitialized,
    "denial_of_service": _denial,
}
_RULES: Final = [
    Rule(row["type"], row["severity"], _LOOKS.get(row["type"]) or _declared(row), row["explanation"], row["fix"])
    for row in _TABLES["rules"]
]


def answer(messages: Messages) -> str:
    """Audit the contract in the last user message, in the direct prompt's form.

    Raises BaselineRefusedError where there is no contract.
    """
    prompt = next((message["content"] for message in reversed(messages) if message["role"] == "user"), "")
    contract = read_delimited("contract", prompt)
    if contract is None:
        raise BaselineRefusedError("the last user message holds no contract to audit")
    findings = audit(_P["number"].sub("", contract))
    listed = [
        {
            "type": finding.rule.type,
            "severity": finding.rule.severity,
            "location": f"{finding.function}()",
            "lines": list(finding.lines),
            "explanation": finding.rule.explanation,
            "attack_scenario": f"Somebody calls {finding.function}(). {finding.rule.explanation}",
            "fix": finding.rule.fix,
        }
        for finding in findings
    ]
    verdict = "vulnerable" if listed else "safe"
    return json.dumps({"verdict": verdict, "confidence": _confidence(findings), "findings": listed})


def _confidence(findings: Sequence[PatternMatch]) -> float:
    """Estimate how often such a verdict is right: low without a finding, higher with a severe one or several."""
    if not findings:
        return 0.55
    severe = any(finding.rule.severity in ("critical", "high") for finding in findings)
    return min(0.9, 0.6 + 0.1 * severe + 0.05 * len(findings))
