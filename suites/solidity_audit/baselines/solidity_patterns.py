"""The subject `baseline/solidity-patterns`: a static finder of known patterns, the bar that a model has to beat.

It reads blanked source text function by function, without types or data flow, and reports each place at which a rule
finds its pattern without the guard that usually belongs to it.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from providers.baselines import BaselineRefusedError, Messages
from suites.base.untrusted import read_delimited
from suites.solidity_audit.baselines.solidity_code import Function, blank, functions

LONGEST_SOURCE = 400_000  # characters; what lies beyond is not looked at
MOST_FINDINGS = 20
MOST_FUNCTIONS = 2_000

_NUMBER = re.compile(r"^[0-9]+\| ?", re.MULTILINE)
_OPEN = re.compile(r"\b(?:public|external)\b")
_HIDDEN = re.compile(r"\b(?:internal|private)\b")
_READ_ONLY = re.compile(r"\b(?:view|pure|constant)\b")
_SENDER_CHECK = re.compile(
    r"msg\.sender ?[!=]=|[!=]= ?(?:payable\()?msg\.sender|_checkOwner|_checkRole|hasRole|\[ ?msg\.sender ?\]"
)
_GUARD_NAME = re.compile(r"\b(?:only\w*|auth\w*|requires\w*|initializer|reinitializer\w*)\b", re.IGNORECASE)
_VALUE_CALL = re.compile(r"\.call\s?(?:\{[^{}]*\}\s?)?\(|\.call\.value\b|\bsafeTransferFrom\s?\(|\bonERC\w+Received\b")
_PUSH = re.compile(r"\.(?:transfer|send)\s?\(|\.call\s?\{\s?value|\.call\.value\b")
_LOCK = re.compile(r"\b(?:nonReentrant|noReentr\w*|lock(?:ed)?|mutex)\b", re.IGNORECASE)
_STATE_DECLARATION = re.compile(
    r"^(?:mapping ?\([^;{}]{0,300}\)|[A-Za-z_$][\w$.]*+(?:\[[^\]\n]{0,80}\]){0,4})"
    r"(?: (?:public|private|internal|override|constant|immutable)){0,3} ([A-Za-z_$][\w$]*+) ?(?:=[^;]{0,500})?;",
    re.MULTILINE,
)
_NOT_TYPES = frozenset(
    ("return", "emit", "delete", "using", "import", "pragma", "event", "error", "throw", "new", "else")
)
_WRITE = re.compile(r"\b([A-Za-z_$][\w$]*+)(?: ?\[[^\]]{0,100}\]|\.\w{1,60}){0,4} ?(?:[-+*/|&^]?=(?!=)|\+\+|--)")
_RANDOM_SOURCE = re.compile(
    r"\b(?:block\.(?:timestamp|number|difficulty|prevrandao|coinbase|blockhash)|blockhash ?\(|now\b)"
)
_SPOT_PRICE = re.compile(
    r"\bgetReserves ?\(|\breserve[01] ?\(|\.balanceOf ?\( ?(?:address ?\( ?)?(?:pair|pool)\b|\bslot0 ?\("
)
_BALANCE_VOTE = re.compile(r"\.balanceOf ?\( ?msg\.sender ?\)")
_LOW_CALL_STATEMENT = re.compile(
    r"(?:^|[;{}])\s?(?:(?:payable|address)\(){0,2}[\w.\[\]]{1,120}\){0,2}\.(?:send|call|callcode|delegatecall) ?"
    r"(?:\{[^{}]{0,300}\})? ?(?:\.value\([^()]{0,300}\))? ?\("
)
_TOKEN_STATEMENT = re.compile(
    r"(?:^|[;{}])\s?(?:IERC20\([^()]{0,100}\)|\w{0,60}[tT]oken\w{0,60}|asset|underlying)\.(?:transfer|transferFrom) ?\("
)
_IGNORED_RESULT = re.compile(
    r"\( ?bool (\w{1,80}) ?,?[^()]{0,100}\) ?=[^;]{0,300}\.(?:call|send|delegatecall)\b[^;]{0,500};"
)
_DELEGATE = re.compile(r"\b([\w.\[\]]{1,80})\.delegatecall ?\(")
_ORIGIN = re.compile(r"\btx\.origin\b")
_PERSON_CHECK = re.compile(r"msg\.sender ?== ?tx\.origin|tx\.origin ?== ?msg\.sender")
_LOOP = re.compile(r"\b(?:for|while) ?\(([^{}]{0,200})\)\s?\{")
_DIVIDE_FIRST = re.compile(r"/ ?[\w.()]+ ?\*")
_PRIVILEGED = re.compile(
    r"\b(?:owner|admin|governance|operator|implementation|minter|treasury|oracle|paused|controller)\w* ?=[^=]"
    r"|\bselfdestruct ?\(|\bsuicide ?\(|\b_mint ?\("
)
_OLD_COMPILER = re.compile(r"pragma solidity ?[\^~>=< ]*+0\.[4-7]\b")
_CALCULATES = re.compile(r"[-+*]=|=[^=;]{0,200}[\w\])] ?[-+*] ?[\w(]")
_UNCHECKED_BLOCK = re.compile(r"\bunchecked\s?\{([^{}]*)\}")
_WRAPS = re.compile(r"[-+*]=|[\w\])] ?[-*] ?[\w(]")
_SIGNATURE = re.compile(r"\becrecover ?\(|\.recover ?\(|\btryRecover ?\(")
_NO_MINIMUM = re.compile(r"\bswap\w* ?\( ?[^,()]+, ?0 ?,|amountOutMin\w* ?: ?0\b")
_EXACT_TIME = re.compile(r"(?:block\.timestamp|\bnow) ?(?:==|%)|== ?(?:block\.timestamp|now)\b")
_TOLD_ONCE = re.compile(r"initialized|[=!]= address\(0\)", re.IGNORECASE)
_PAYMENT = re.compile(r"\.transfer ?\(|require ?\( ?\w{1,80}\.send ?\(")
_OWN_PAYMENT = re.compile(r"msg\.sender\)? ?\.transfer|\.transfer ?\([^()]{0,200},")
_SPENT = re.compile(r"nonce|(?:used|executed|claimed|spent)\w* ?\[", re.IGNORECASE)
_BOUND = re.compile(r"chainid|domain|digest|address ?\( ?this ?\)", re.IGNORECASE)
_VOTING = re.compile(r"vote|propos", re.IGNORECASE)


@dataclass(frozen=True)
class Contract:
    """A source as rules read it: without comments, the content of strings, blank lines and runs of white space."""

    code: str
    lines: Sequence[int]  # the number in the source of each line of `code`

    @classmethod
    def of(cls, source: str) -> "Contract":
        """Build a contract from its source."""
        numbered = [
            (n, " ".join(line.split())) for n, line in enumerate(blank(source, strings=True).split("\n"), start=1)
        ]
        kept = [(number, line) for number, line in numbered if line]
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
        declarations = _STATE_DECLARATION.finditer("\n".join(outer))
        return frozenset(match[1] for match in declarations if match[0].split()[0] not in _NOT_TYPES)


Lines = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern: what it is, how it is looked for in a function, and what is said where it is found."""

    type: str
    severity: str
    look: Callable[[Contract, Function], Lines]
    explanation: str
    fix: str


@dataclass(frozen=True, slots=True)
class PatternMatch:
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


def _first(function: Function, pattern: re.Pattern[str]) -> Lines:
    match = pattern.search(function.body)
    return _at(function, match.end() - 1) if match else ()


def _finding(pattern: re.Pattern[str]) -> Callable[[Contract, Function], Lines]:
    """Build a look that needs no guard to be missing."""
    return lambda _, function: _first(function, pattern)


def _is_open(function: Function) -> bool:
    """Tell whether anybody can call the function to change something."""
    closed = _HIDDEN.search(function.header) or _READ_ONLY.search(function.header)
    return function.kind != "constructor" and not closed


def _is_guarded(function: Function) -> bool:
    return bool(_GUARD_NAME.search(function.header) or _SENDER_CHECK.search(function.body))


def _state_writes(contract: Contract, body: str, start: int) -> Iterator[int]:
    return (match.start() for match in _WRITE.finditer(body, start) if match[1] in contract.state)


def _reentrancy(contract: Contract, function: Function) -> Lines:
    call = _VALUE_CALL.search(function.body)
    if call is None or not _is_open(function) or _LOCK.search(function.header):
        return ()
    write = next(_state_writes(contract, function.body, call.end()), None)
    return () if write is None else _at(function, call.start(), write)


def _tx_origin(_: Contract, function: Function) -> Lines:
    return () if _PERSON_CHECK.search(function.body) else _first(function, _ORIGIN)


def _unchecked_result(_: Contract, function: Function) -> Lines:
    ignored = _IGNORED_RESULT.search(function.body)
    if ignored and not re.search(rf"\b{re.escape(ignored[1])}\b", function.body[ignored.end() :]):
        return _at(function, ignored.end() - 1)
    return _first(function, _LOW_CALL_STATEMENT) or _first(function, _TOKEN_STATEMENT)


def _weak_randomness(_: Contract, function: Function) -> Lines:
    body = function.body
    for match in _RANDOM_SOURCE.finditer(body):
        before = body[max(0, match.start() - 300) : match.start()].rpartition(";")[2]
        statement = before + body[match.start() : match.end() + 300].partition(";")[0]
        if any(sign in statement for sign in ("keccak256", "sha3", "blockhash", "%")):
            return _at(function, match.start())
    return ()


def _overflow(contract: Contract, function: Function) -> Lines:
    if _OLD_COMPILER.search(contract.code):
        return () if "SafeMath" in contract.code or not _is_open(function) else _first(function, _CALCULATES)
    wrapping = (block for block in _UNCHECKED_BLOCK.finditer(function.body) if _WRAPS.search(block[1]))
    block = next(wrapping, None)
    return () if block is None else _at(function, block.start(1))


def _delegatecall(_: Contract, function: Function) -> Lines:
    call = _DELEGATE.search(function.body)
    if call is None or not _is_open(function) or _is_guarded(function):
        return ()
    parameters = function.header[function.header.find("(") :]
    return _at(function, call.start()) if re.search(rf"\b{re.escape(call[1])}\b", parameters) else ()


def _access_control(_: Contract, function: Function) -> Lines:
    if not _is_open(function) or _is_guarded(function) or function.name.startswith("init"):
        return ()
    return _first(function, _PRIVILEGED) if _OPEN.search(function.header) else ()


def _uninitialized(_: Contract, function: Function) -> Lines:
    is_initializer = function.name.lower().startswith("init") and _is_open(function)
    once = _TOLD_ONCE.search(function.body) or _is_guarded(function)
    return (function.first_line,) if is_initializer and not once else ()


def _denial(_: Contract, function: Function) -> Lines:
    for loop in _LOOP.finditer(function.body):
        if ".length" in loop[1] and _PUSH.search(function.body, loop.end(), loop.end() + 1_000):
            return _at(function, loop.start())
    pays_others = "payable" in function.header and not _OWN_PAYMENT.search(function.body)
    return _first(function, _PAYMENT) if pays_others else ()


def _signature_replay(_: Contract, function: Function) -> Lines:
    safe = _SPENT.search(function.body) and _BOUND.search(function.body)
    return () if safe or not _is_open(function) else _first(function, _SIGNATURE)


def _governance(_: Contract, function: Function) -> Lines:
    return _first(function, _BALANCE_VOTE) if _VOTING.search(function.name) else ()


_RULES: tuple[Rule, ...] = (
    Rule(
        "reentrancy",
        "high",
        _reentrancy,
        "Control passes to another contract before the state is written, so it can come back in between.",
        "Write the state before the call, or lock the function.",
    ),
    Rule(
        "tx_origin_authentication",
        "high",
        _tx_origin,
        "tx.origin is whoever began the transaction, not whoever calls: a contract in between acts with its rights.",
        "Compare msg.sender instead.",
    ),
    Rule(
        "unchecked_return_value",
        "medium",
        _unchecked_result,
        "The result of a call that may fail is not looked at, and the function goes on as if it had succeeded.",
        "Require the call to succeed.",
    ),
    Rule(
        "weak_randomness",
        "high",
        _weak_randomness,
        "The random number follows from values of the block, which callers know and producers choose.",
        "Use a source of randomness that nobody can foresee.",
    ),
    Rule(
        "timestamp_dependence",
        "medium",
        _finding(_EXACT_TIME),
        "An outcome depends on the exact time of the block, which its producer sets.",
        "Do not decide by exact times.",
    ),
    Rule(
        "integer_overflow",
        "high",
        _overflow,
        "Arithmetic without a check can wrap around.",
        "Use checked arithmetic.",
    ),
    Rule(
        "delegatecall_injection",
        "critical",
        _delegatecall,
        "The caller chooses the code that runs with this contract's storage.",
        "Allow only known targets.",
    ),
    Rule(
        "access_control",
        "critical",
        _access_control,
        "Anybody can call a function that changes who or what the contract trusts.",
        "Check the caller.",
    ),
    Rule(
        "uninitialized_proxy",
        "critical",
        _uninitialized,
        "Anybody can initialize, and again.",
        "Allow one initialization, by whoever deploys.",
    ),
    Rule(
        "denial_of_service",
        "medium",
        _denial,
        "One recipient that refuses a payment, or a list that grows, blocks the function for all.",
        "Credit amounts to be withdrawn one by one.",
    ),
    Rule(
        "signature_replay",
        "high",
        _signature_replay,
        "Nothing marks a signature as used, or binds it to this contract and chain.",
        "Sign a nonce, the chain and the contract, and mark it as used.",
    ),
    Rule(
        "oracle_manipulation",
        "high",
        _finding(_SPOT_PRICE),
        "The price is the state of a pool at this moment, which a large trade moves.",
        "Use an average over time, or an independent feed.",
    ),
    Rule(
        "flash_loan_governance",
        "high",
        _governance,
        "Votes count the balance of this moment, which can be borrowed for one transaction.",
        "Count balances of an earlier block.",
    ),
    Rule(
        "front_running",
        "medium",
        _finding(_NO_MINIMUM),
        "A trade without a lowest acceptable amount can be put between two others.",
        "Let the caller state a minimum.",
    ),
    Rule(
        "rounding_error",
        "low",
        _finding(_DIVIDE_FIRST),
        "Division comes before multiplication, and what it cuts off is multiplied.",
        "Multiply first.",
    ),
)


def answer(messages: Messages) -> str:
    """Audit the contract in the last user message, in the direct prompt's form.

    Raises BaselineRefusedError where there is no contract.
    """
    prompt = next((message["content"] for message in reversed(messages) if message["role"] == "user"), "")
    contract = read_delimited("contract", prompt)
    if contract is None:
        raise BaselineRefusedError("the last user message holds no contract to audit")
    findings = audit(_NUMBER.sub("", contract))
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
