"""What rule-based judges read: the blocks of a prompt, the audit's findings, the kinds that words name."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from suites.base.untrusted import read_delimited

LONGEST_AUDIT = 200_000  # characters
MOST_FINDINGS = 100
MOST_PARTS = 2_000  # paragraphs and list items
MOST_MENTIONS = 200  # of lines, in one text

_FAMILIES: tuple[tuple[str, ...], ...] = (
    ("reentrancy", "re-entran", "reentrant", "reenter", "re-enter", "checks-effects", "callback before"),
    ("integer_overflow", "overflow", "underflow", "arithmetic", "wraparound", "wrap around", "truncat"),
    ("access_control", "access control", "authoriz", "authoris", "unprotected", "privilege", "missing modifier"),
    ("tx_origin_authentication", "tx.origin", "tx origin", "phishing"),
    ("unchecked_return_value", "unchecked", "return value", "ignored result", "low level call", "low_level_calls"),
    ("weak_randomness", "random", "predictable", "bad_randomness", "blockhash"),
    ("timestamp_dependence", "timestamp", "time_manipulation", "block time", "time manipulation"),
    ("denial_of_service", "denial", "dos", "unbounded loop", "gas limit", "griefing"),
    ("delegatecall_injection", "delegatecall", "delegate call"),
    ("signature_replay", "replay", "signature", "nonce", "malleab"),
    ("oracle_manipulation", "oracle", "price manipulation", "spot price"),
    ("flash_loan_governance", "flash loan", "flash-loan", "flash_loan", "governance", "voting power"),
    ("front_running", "front running", "front-running", "frontrun", "sandwich", "slippage", "commit-reveal", "mev"),
    ("rounding_error", "rounding", "precision", "division before", "truncation", "inflation attack"),
    ("storage_collision", "storage collision", "storage layout", "slot collision"),
    ("uninitialized_proxy", "uninitialized", "uninitialised", "initializ", "initialis"),
    ("logic_error", "logic", "accounting", "incorrect calculation", "business rule", "off-by-one"),
    ("short_addresses", "short address"),
)
"""Words by which kinds of vulnerability are known; a word that names two kinds counts for both."""

_LINE = re.compile(r"\blines?[ \t]*+([0-9]{1,7})(?:[ \t]*+(?:-|to)[ \t]*+([0-9]{1,7}))?", re.IGNORECASE)
_PARAGRAPH = re.compile(r"\n[ \t]*\n|\n(?=[ \t]*(?:[-*•]|[0-9]{1,3}[.)])[ \t])")
SAFE = re.compile(
    r"\b(?:no (?:\w+ )?(?:vulnerabilit\w+|issues?|problems?)|(?:looks|is|appears|seems) (?:safe|fine|secure|sound))\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Material:
    """The blocks of a judge's prompt: the answer's form, what is known of the contract, its source, the audit."""

    form: Mapping[str, Any]
    known: Mapping[str, Any]
    contract: str
    audit: str


@dataclass(frozen=True, slots=True)
class ClaimedFinding:
    """One finding as the audit states it: its full text, and those parts that have a field of their own."""

    words: str
    type: str | None
    severity: str | None
    location: str | None
    lines: frozenset[int]


def read_material(messages: Sequence[Mapping[str, str]]) -> Material | None:
    """Read the blocks of a judge's prompt; None where it holds no audit to judge."""
    prompt = next((message["content"] for message in messages if message["role"] == "user"), "")
    form, truth, contract, audit = (read_delimited(n, prompt) for n in ("form", "ground_truth", "contract", "audit"))
    if form is None or truth is None or audit is None:
        return None
    return Material(json.loads(form), json.loads(truth), contract or "", audit)


def read_findings(audit: str) -> tuple[list[ClaimedFinding], Mapping[str, Any]]:
    """Read the findings of an audit, and its fields where it is JSON."""
    audit = audit[:LONGEST_AUDIT]
    stated = _json_object(audit)
    listed = stated.get("findings")
    if isinstance(listed, list):
        return [_from_json(each) for each in listed[:MOST_FINDINGS]], stated
    parts = [part.strip() for part in _PARAGRAPH.split(audit) if part.strip()]
    naming = (part for part in parts[:MOST_PARTS] if families(part) and not SAFE.search(part))
    return [
        ClaimedFinding(part, None, None, None, frozenset(lines_of(part))) for part in islice(naming, MOST_FINDINGS)
    ], {}


def _json_object(audit: str) -> Mapping[str, Any]:
    start, end = audit.find("{"), audit.rfind("}")
    try:
        value = json.loads(audit[start : end + 1]) if 0 <= start < end else None
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {}


def _from_json(finding: Any) -> ClaimedFinding:
    fields = finding if isinstance(finding, dict) else {}
    text = {name: value for name, value in fields.items() if isinstance(value, str)}
    lines = fields.get("lines")
    numbers = {n for n in lines if type(n) is int} if isinstance(lines, list) else set()
    location = text.get("location")
    return ClaimedFinding(
        " ".join(text.values()),
        text.get("type"),
        text.get("severity"),
        location,
        frozenset(numbers | lines_of(location or "")),
    )


def lines_of(text: str) -> set[int]:
    """List the line numbers that a text names."""
    numbers: set[int] = set()
    for mention in islice(_LINE.finditer(text), MOST_MENTIONS):
        low, high = int(mention[1]), int(mention[2] or mention[1])
        numbers.update(range(low, min(high, low + 1_000) + 1))
    return numbers


def families(text: str) -> set[str]:
    """List the kinds of vulnerability that a text names."""
    lowered = text.lower()
    spoken = lowered.replace("_", " ")
    return {family[0] for family in _FAMILIES if any(_says(word, lowered) or _says(word, spoken) for word in family)}


def _says(word: str, text: str) -> bool:
    return re.search(rf"(?<![a-z]){re.escape(word)}", text) is not None


def judged_finding(number: int, finding: ClaimedFinding, kind: str, reason: str) -> dict[str, Any]:
    """Build a judgement's entry for one finding, with its class."""
    place = finding.location or (
        f"lines {', '.join(map(str, sorted(finding.lines)[:20]))}" if finding.lines else finding.words
    )
    return {
        "finding_id": number,
        "classification": kind,
        "matches_target": kind == "TARGET_MATCH",
        "is_valid_concern": kind in ("TARGET_MATCH", "PARTIAL_MATCH"),
        "vulnerability_type_claimed": _short(finding.type),
        "severity_claimed": _short(finding.severity),
        "location_claimed": _short(place),
        "reason": reason,
    }


def stated_confidence(stated: Mapping[str, Any]) -> float | None:
    """Read the confidence that a structured audit states; None where it is not between 0 and 1."""
    confidence = stated.get("confidence")
    is_share = isinstance(confidence, int | float) and not isinstance(confidence, bool) and 0 <= confidence <= 1
    return confidence if is_share else None


def stated_verdict(stated: Mapping[str, Any]) -> bool | None:
    """Read the verdict that a structured audit states."""
    return {"vulnerable": True, "safe": False}.get(str(stated.get("verdict")).lower())


def _short(text: str | None) -> str | None:
    return None if text is None else text[:1_000]
