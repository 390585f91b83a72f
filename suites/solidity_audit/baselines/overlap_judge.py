"""The judge `baseline/overlap-judge`: compares an audit with the ground truth by type synonyms, functions and lines.

It reads the blocks of a judge's prompt (form, ground_truth, contract, audit), and nothing that an audit says about
itself: a finding counts by the type, the functions and the lines that it names.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from suites.base.untrusted import read_delimited
from suites.solidity_audit.baselines.solidity_code import blank, functions

LONGEST_AUDIT = 200_000  # characters
MOST_FINDINGS = 100
MOST_PARTS = 2_000  # paragraphs and list items
MOST_MENTIONS = 200  # of lines, in one text
NEAR = 3  # lines

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

_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*+")
_CALLED = re.compile(r"(?<![\w$])([A-Za-z_$][\w$]*+)\s*+\(")
_LINE = re.compile(r"\blines?[ \t]*+([0-9]{1,7})(?:[ \t]*+(?:-|to)[ \t]*+([0-9]{1,7}))?", re.IGNORECASE)
_PARAGRAPH = re.compile(r"\n[ \t]*\n|\n(?=[ \t]*(?:[-*•]|[0-9]{1,3}[.)])[ \t])")
_SAFE = re.compile(
    r"\b(?:no (?:\w+ )?(?:vulnerabilit\w+|issues?|problems?)|(?:looks|is|appears|seems) (?:safe|fine|secure|sound))\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Told:
    """One finding as the audit tells it: all its words, and the parts of it that are fields of their own."""

    words: str
    type: str | None
    severity: str | None
    location: str | None
    lines: frozenset[int]


def answer(messages: Sequence[Mapping[str, str]]) -> str | None:
    """The judgement, in the form that the prompt asks for; None where the prompt holds no audit to judge."""
    prompt = next((message["content"] for message in messages if message["role"] == "user"), "")
    blocks = {name: read_delimited(name, prompt) for name in ("form", "ground_truth", "contract", "audit")}
    form, truth, audit = blocks["form"], blocks["ground_truth"], blocks["audit"]
    if form is None or truth is None or audit is None:
        return None
    known, wanted = json.loads(truth), json.loads(form)
    names = {function.name for function in functions(blank(blocks["contract"] or "", strings=True))}
    findings, stated = _findings(audit[:LONGEST_AUDIT])
    classes = [_classify(told, known, names) for told in findings]
    pairs = enumerate(zip(findings, classes, strict=True), start=1)
    reply: dict[str, Any] = {"findings": [_judged(number, told, kind) for number, (told, kind) in pairs]}
    if "overall_verdict" in wanted:
        reply["overall_verdict"] = _verdict(audit, stated, findings)
    if "target_assessment" in wanted:
        reply["target_assessment"] = _assess(findings, classes, known)
    return json.dumps(reply)


def _findings(audit: str) -> tuple[list[Told], Mapping[str, Any]]:
    """The findings of an audit, and its fields where it is JSON."""
    stated = _json_object(audit)
    listed = stated.get("findings")
    if isinstance(listed, list):
        return [_from_json(each) for each in listed[:MOST_FINDINGS]], stated
    parts = [part.strip() for part in _PARAGRAPH.split(audit) if part.strip()]
    naming = (part for part in parts[:MOST_PARTS] if _families(part) and not _SAFE.search(part))
    return [Told(part, None, None, None, frozenset(_lines(part))) for part in islice(naming, MOST_FINDINGS)], {}


def _json_object(audit: str) -> Mapping[str, Any]:
    start, end = audit.find("{"), audit.rfind("}")
    try:
        value = json.loads(audit[start : end + 1]) if 0 <= start < end else None
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {}


def _from_json(finding: Any) -> Told:
    fields = finding if isinstance(finding, dict) else {}
    text = {name: value for name, value in fields.items() if isinstance(value, str)}
    lines = fields.get("lines")
    numbers = {n for n in lines if type(n) is int} if isinstance(lines, list) else set()
    location = text.get("location")
    return Told(
        " ".join(text.values()),
        text.get("type"),
        text.get("severity"),
        location,
        frozenset(numbers | _lines(location or "")),
    )


def _lines(text: str) -> set[int]:
    found: set[int] = set()
    for mention in islice(_LINE.finditer(text), MOST_MENTIONS):
        low, high = int(mention[1]), int(mention[2] or mention[1])
        found.update(range(low, min(high, low + 1_000) + 1))
    return found


def _families(text: str) -> set[str]:
    """The kinds of vulnerability that a text names."""
    said = text.lower()
    spoken = said.replace("_", " ")
    return {family[0] for family in _FAMILIES if any(_says(word, said) or _says(word, spoken) for word in family)}


def _says(word: str, text: str) -> bool:
    return re.search(rf"(?<![a-z]){re.escape(word)}", text) is not None


def _same_type(told: Told, known: Mapping[str, Any]) -> str:
    """How the claimed type compares with the true one: exact, semantic, wrong or not_mentioned."""
    true = str(known.get("vulnerability_type") or "")
    plain = _plain(told.type or "")
    if plain and plain == _plain(true):
        return "exact"
    claimed = _families(told.type if told.type else told.words)
    if claimed & (_families(true) or {true}):
        return "semantic" if told.type else "exact"
    return "wrong" if claimed or plain else "not_mentioned"


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")


def _same_place(told: Told, known: Mapping[str, Any]) -> bool:
    words = {*_IDENTIFIER.findall(told.location if told.location else told.words)}
    if any(str(name) in words for name in known.get("vulnerable_functions") or ()):
        return True
    true = known.get("vulnerable_lines") or ()
    return any(abs(a - b) <= NEAR for a in told.lines for b in true)


def _classify(told: Told, known: Mapping[str, Any], names: set[str]) -> str:
    if known.get("is_vulnerable"):
        same, here = _same_type(told, known) in ("exact", "semantic"), _same_place(told, known)
        if same and here:
            return "TARGET_MATCH"
        if here and _families(told.words) & _families(str(known.get("vulnerability_type") or "")):
            return "PARTIAL_MATCH"
    claimed = _CALLED.findall(told.location or "")
    if claimed and not names & {*claimed, "constructor", "fallback", "receive"}:
        return "HALLUCINATED"
    return "MISCHARACTERIZED" if _families(told.words) else "INFORMATIONAL"


def _judged(number: int, told: Told, kind: str) -> dict[str, Any]:
    place = told.location or (f"lines {', '.join(map(str, sorted(told.lines)[:20]))}" if told.lines else told.words)
    return {
        "finding_id": number,
        "classification": kind,
        "matches_target": kind == "TARGET_MATCH",
        "is_valid_concern": kind in ("TARGET_MATCH", "PARTIAL_MATCH"),
        "vulnerability_type_claimed": _short(told.type),
        "severity_claimed": _short(told.severity),
        "location_claimed": _short(place),
        "reason": "type, function and line overlap",
    }


def _short(text: str | None) -> str | None:
    return None if text is None else text[:1_000]


def _verdict(audit: str, stated: Mapping[str, Any], findings: Sequence[Told]) -> dict[str, Any]:
    confidence = stated.get("confidence")
    is_share = isinstance(confidence, int | float) and not isinstance(confidence, bool) and 0 <= confidence <= 1
    said: bool | None = {"vulnerable": True, "safe": False}.get(str(stated.get("verdict")).lower())
    if said is None:
        said = True if findings else False if _SAFE.search(audit) else None
    return {"said_vulnerable": said, "confidence_expressed": confidence if is_share else None}


def _assess(findings: Sequence[Told], classes: Sequence[str], known: Mapping[str, Any]) -> dict[str, Any]:
    number = next((n for n, kind in enumerate(classes, 1) if kind == "TARGET_MATCH"), None)
    nothing = dict.fromkeys(("root_cause_identification", "attack_vector_validity", "fix_suggestion_validity"))
    if number is None:
        about = [_same_type(told, known) for told in findings if _same_place(told, known)]
        return {"found": False, "finding_id": None, "type_match": "wrong" if about else "not_mentioned", **nothing}
    told = findings[number - 1]
    scores = {
        name: {"score": _overlap(told.words, str(known[field]))} if known.get(field) else None
        for name, field in zip(nothing, ("root_cause", "attack_scenario", "fix"), strict=True)
    }
    return {"found": True, "finding_id": number, "type_match": _same_type(told, known), **scores}


def _overlap(said: str, true: str) -> float:
    """The share of the truth's longer words that are said, in steps of 0.05: a poor stand-in for understanding."""
    wanted = {*re.findall(r"[a-z]{5,}", true.lower())}
    spoken = {word[:5] for word in re.findall(r"[a-z]{5,}", said.lower())}
    share = sum(word[:5] in spoken for word in wanted) / len(wanted) if wanted else 0.0
    return round(min(1.0, 0.25 + share) * 20) / 20
