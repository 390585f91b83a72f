"""The subject `baseline/solidity-patterns`: a static finder of known patterns, the bar that a model has to beat.

It reads blanked source text function by function, without types or data flow, and reports each place at which a rule
of `patterns.toml` finds its pattern without the guard that usually belongs to it. No compiler: the source may be of any
version, cut off, or no Solidity at all.
"""

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from evalake.core.files import tables_beside
from evalake.models.request import BaselineRefusedError, Messages
from evalake.sdk.sample import read_delimited
from evalake.suites.solidity_audit.truth import SEVERITIES

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


# The patterns, and the rules that look for them.


LONGEST_SOURCE = 400_000  # characters; what lies beyond is not looked at
MOST_FINDINGS = 20
MOST_FUNCTIONS = 2_000

_TABLES: Final = tables_beside(__file__, "patterns.toml")
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


def audit(source: str) -> list[dict[str, Any]]:
    """Find the patterns in a source, at most one of a kind for each function, the most severe first.

    `lines` of a finding are 1-based lines of the source.
    """
    contract = Contract.of(source[:LONGEST_SOURCE])
    findings = [
        {
            "type": rule["type"],
            "severity": rule["severity"],
            "location": f"{function.name}()",
            "lines": [contract.lines[line - 1] for line in lines],
            "explanation": rule["explanation"],
            "attack_scenario": f"Somebody calls {function.name}(). {rule['explanation']}",
            "fix": rule["fix"],
        }
        for function in contract.blocks[:MOST_FUNCTIONS]
        for rule in _TABLES["rules"]
        if function.kind != "modifier" and (lines := _look(rule, contract, function))
    ]
    return sorted(findings, key=lambda each: SEVERITIES.index(each["severity"]))[:MOST_FINDINGS]


def _look(rule: Mapping[str, Any], contract: Contract, function: Function) -> Lines:
    """Look for a rule's pattern in a function that meets the rule's conditions."""
    closed = (rule.get("open") and not _is_open(function)) or (rule.get("unguarded") and _is_guarded(function))
    told = "unless" in rule and all(_P[guard].search(function.body) for guard in rule["unless"])
    parts = [part for part in ("header", "name") if part in rule]
    if closed or told or not all(_P[rule[part]].search(getattr(function, part)) for part in parts):
        return ()
    return _first(function, rule["look"]) if "look" in rule else _LOOKS[rule["type"]](contract, function)


def _at(function: Function, *positions: int) -> Lines:
    """Compute the line numbers of positions in a function's body."""
    return tuple(sorted({function.body_line + function.body.count("\n", 0, position) for position in positions}))


def _first(function: Function, pattern: str) -> Lines:
    match = _P[pattern].search(function.body)
    return _at(function, match.end() - 1) if match else ()


def _is_open(function: Function) -> bool:
    """Tell whether anybody can call the function to change something."""
    return function.kind != "constructor" and not _P["closed"].search(function.header)


def _is_guarded(function: Function) -> bool:
    return bool(_P["guard_name"].search(function.header) or _P["sender_check"].search(function.body))


def _reentrancy(contract: Contract, function: Function) -> Lines:
    if (call := _P["value_call"].search(function.body)) is None:
        return ()
    writes = _P["write"].finditer(function.body, call.end())
    return next((_at(function, call.start(), write.start()) for write in writes if write[1] in contract.state), ())


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
    blocks = _P["unchecked_block"].finditer(function.body)
    return next((_at(function, block.start(1)) for block in blocks if _P["wraps"].search(block[1])), ())


def _delegatecall(_: Contract, function: Function) -> Lines:
    call, parameters = _P["delegate"].search(function.body), function.header[function.header.find("(") :]
    return _at(function, call.start()) if call and re.search(rf"\b{re.escape(call[1])}\b", parameters) else ()


def _denial(_: Contract, function: Function) -> Lines:
    for loop in _P["loop"].finditer(function.body):
        if ".length" in loop[1] and _P["push"].search(function.body, loop.end(), loop.end() + 1_000):
            return _at(function, loop.start())
    pays_others = "payable" in function.header and not _P["own_payment"].search(function.body)
    return _first(function, "payment") if pays_others else ()


_LOOKS: Mapping[str, Callable[[Contract, Function], Lines]] = {
    "reentrancy": _reentrancy,
    "unchecked_return_value": _unchecked_result,
    "weak_randomness": _weak_randomness,
    "integer_overflow": _overflow,
    "delegatecall_injection": _delegatecall,
    "uninitialized_proxy": lambda _, function: (function.first_line,),
    "denial_of_service": _denial,
}


def audit_by_patterns(messages: Messages) -> str:
    """Audit the contract in the last user message, in the direct prompt's form.

    Raises BaselineRefusedError where there is no contract.
    """
    prompt = next((message["content"] for message in reversed(messages) if message["role"] == "user"), "")
    contract = read_delimited("contract", prompt)
    if contract is None:
        raise BaselineRefusedError("the last user message holds no contract to audit")
    findings = audit(_P["number"].sub("", contract))
    # How often such a verdict is right: less without a finding, more with a severe one or several
    severe = any(finding["severity"] in ("critical", "high") for finding in findings)
    confidence = min(0.9, 0.6 + 0.1 * severe + 0.05 * len(findings)) if findings else 0.55
    verdict = "vulnerable" if findings else "safe"
    return json.dumps({"verdict": verdict, "confidence": confidence, "findings": findings})
