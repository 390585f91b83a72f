"""The rule-based judges: `baseline/overlap-judge` and `baseline/wording-judge`, and how both read a prompt.

The first compares an audit with the ground truth by type synonyms, functions and lines. It reads nothing that an audit
says about itself: a finding counts by the type, the functions and the lines that it names. The second compares the
words of an audit with those of the known root cause and attack: neither the type of a finding nor its lines count, and
a verdict or a confidence in prose is read from its sentences. So the two disagree where an audit names the right thing
for a wrong reason, or explains the right thing under another name.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from evalake.core.files import tables_beside
from evalake.models.request import BaselineRefusedError, Messages
from evalake.sdk.json_in_text import as_share, json_object
from evalake.sdk.sample import read_delimited
from evalake.suites.solidity_audit.baselines.patterns import blank, functions
from evalake.suites.solidity_audit.truth import SCORES

LONGEST_AUDIT = 200_000  # characters
MOST_FINDINGS = 100
MOST_PARTS = 2_000  # paragraphs and list items
MOST_MENTIONS = 200  # of lines, in one text

_TABLES = tables_beside(__file__, "families.toml")
_FAMILIES = {
    kind: re.compile(rf"(?<![a-z])(?:{'|'.join(map(re.escape, (kind, *words)))})")
    for kind, words in _TABLES["families"].items()
}
"""Words by which kinds of vulnerability are known; a word that names two kinds counts for both."""
LOOKS: Mapping[str, re.Pattern[str]] = {name: re.compile(text) for name, text in _TABLES["patterns"].items()}
"""What judges look for in the words of an audit."""

UNDERSTOOD = dict(zip(SCORES.values(), ("root_cause", "attack_scenario", "fix"), strict=True))
"""What is scored of a found target -> the field of the ground truth that it is compared with."""


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
    lines: frozenset[int]
    type: str | None = None
    severity: str | None = None
    location: str | None = None


def read_material(messages: Messages) -> Material:
    """Read the blocks of a judge's prompt. Raises BaselineRefusedError where it holds no audit to judge."""
    prompt = next((message["content"] for message in messages if message["role"] == "user"), "")
    form, truth, contract, audit = (read_delimited(n, prompt) for n in ("form", "ground_truth", "contract", "audit"))
    if form is None or truth is None or audit is None:
        raise BaselineRefusedError("the user message holds no audit to judge")
    return Material(json.loads(form), json.loads(truth), contract or "", audit)


def read_findings(audit: str) -> tuple[list[ClaimedFinding], Mapping[str, Any]]:
    """Read the findings of an audit, and its fields where it is JSON."""
    audit = audit[:LONGEST_AUDIT]
    stated = json_object(audit[audit.find("{") : audit.rfind("}") + 1]) or {}
    listed = stated.get("findings")
    if isinstance(listed, list):
        return [_from_json(each) for each in listed[:MOST_FINDINGS]], stated
    parts = [part.strip() for part in LOOKS["paragraph"].split(audit) if part.strip()]
    naming = (part for part in parts[:MOST_PARTS] if families(part) and not LOOKS["safe"].search(part))
    return [in_prose(part) for part in islice(naming, MOST_FINDINGS)], {}


def in_prose(words: str) -> ClaimedFinding:
    """Make a finding of a text without fields."""
    return ClaimedFinding(words, frozenset(lines_of(words)))


def _from_json(finding: Any) -> ClaimedFinding:
    fields = finding if isinstance(finding, dict) else {}
    text = {name: value for name, value in fields.items() if isinstance(value, str)}
    lines = fields.get("lines")
    numbers = {n for n in lines if type(n) is int} if isinstance(lines, list) else set()
    named = frozenset(numbers | lines_of(text.get("location", "")))
    return ClaimedFinding(" ".join(text.values()), named, *map(text.get, ("type", "severity", "location")))


def lines_of(text: str) -> set[int]:
    """List the line numbers that a text names."""
    numbers: set[int] = set()
    for mention in islice(LOOKS["line"].finditer(text), MOST_MENTIONS):
        low, high = int(mention[1]), int(mention[2] or mention[1])
        numbers.update(range(low, min(high, low + 1_000) + 1))
    return numbers


def families(text: str) -> set[str]:
    """List the kinds of vulnerability that a text names."""
    texts = (text.lower(), text.lower().replace("_", " "))
    return {kind for kind, look in _FAMILIES.items() if any(map(look.search, texts))}


def judgement(
    material: Material,
    findings: Sequence[ClaimedFinding],
    classes: Sequence[str],
    reason: str,
    verdict: tuple[bool | None, float | None],
    target: Mapping[str, Any],
) -> str:
    """Write a judgement: each finding with its class; the audit's verdict and the target, where the form asks."""
    classified = enumerate(zip(findings, classes, strict=True), start=1)
    listed = [_judged(number, finding, kind, reason) for number, (finding, kind) in classified]
    said = dict(zip(("said_vulnerable", "confidence_expressed"), verdict, strict=True))
    further = {"overall_verdict": said, "target_assessment": target}
    return json.dumps({"findings": listed} | {name: field for name, field in further.items() if name in material.form})


def assessment(
    known: Mapping[str, Any], type_match: str, score: Callable[[str, str], float], number: int = 0, words: str = ""
) -> Mapping[str, Any]:
    """Write the target's assessment by the finding of this number, 0 where none matches, and its words."""
    scores = {
        name: {"score": score(words, str(known[field]))} if number and known.get(field) else None
        for name, field in UNDERSTOOD.items()
    }
    return {"found": number > 0, "finding_id": number or None, "type_match": type_match, **scores}


def _judged(number: int, finding: ClaimedFinding, kind: str, reason: str) -> dict[str, Any]:
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


def stated_verdict(stated: Mapping[str, Any]) -> tuple[bool | None, float | None]:
    """Read the verdict of a structured audit and its confidence; None where it is not between 0 and 1."""
    verdict = {"vulnerable": True, "safe": False}.get(str(stated.get("verdict")).lower())
    return verdict, as_share(stated.get("confidence"))


def _short(text: str | None) -> str | None:
    return None if text is None else text[:1_000]


# By type, functions and lines.


NEAR = 3  # lines


def judge_by_overlap(messages: Messages) -> str:
    """Write the judgement in the form that the prompt asks for.

    Raises BaselineRefusedError where the prompt holds no audit to judge.
    """
    material = read_material(messages)
    known = material.known
    names = {function.name for function in functions(blank(material.contract, strings=True))}
    findings, stated = read_findings(material.audit)
    classes = [_class_by_overlap(finding, known, names) for finding in findings]
    said, confidence = stated_verdict(stated)
    if said is None:
        said = True if findings else False if LOOKS["safe"].search(material.audit) else None
    target = _target_by_overlap(findings, classes, known)
    return judgement(material, findings, classes, "type, function and line overlap", (said, confidence), target)


def _same_type(finding: ClaimedFinding, known: Mapping[str, Any]) -> str:
    """Compare the claimed type with the true one: exact, semantic, wrong or not_mentioned."""
    true = str(known.get("vulnerability_type") or "")
    plain = _plain_type(finding.type or "")
    if plain and plain == _plain_type(true):
        return "exact"
    claimed = families(finding.type if finding.type else finding.words)
    if claimed & (families(true) or {true}):
        return "semantic" if finding.type else "exact"
    return "wrong" if claimed or plain else "not_mentioned"


def _plain_type(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")


def _same_place(finding: ClaimedFinding, known: Mapping[str, Any]) -> bool:
    words = {*LOOKS["identifier"].findall(finding.location if finding.location else finding.words)}
    if any(str(name) in words for name in known.get("vulnerable_functions") or ()):
        return True
    true = known.get("vulnerable_lines") or ()
    return any(abs(a - b) <= NEAR for a in finding.lines for b in true)


def _class_by_overlap(finding: ClaimedFinding, known: Mapping[str, Any], names: set[str]) -> str:
    if known.get("is_vulnerable"):
        same, here = _same_type(finding, known) in ("exact", "semantic"), _same_place(finding, known)
        if same and here:
            return "TARGET_MATCH"
        if here and families(finding.words) & families(str(known.get("vulnerability_type") or "")):
            return "PARTIAL_MATCH"
    claimed = LOOKS["called_at"].findall(finding.location or "")
    if claimed and not names & {*claimed, "constructor", "fallback", "receive"}:
        return "HALLUCINATED"
    return "MISCHARACTERIZED" if families(finding.words) else "INFORMATIONAL"


def _target_by_overlap(
    findings: Sequence[ClaimedFinding], classes: Sequence[str], known: Mapping[str, Any]
) -> Mapping[str, Any]:
    if "TARGET_MATCH" not in classes:
        near = any(_same_place(finding, known) for finding in findings)
        return assessment(known, "wrong" if near else "not_mentioned", _overlap)
    place = classes.index("TARGET_MATCH")
    return assessment(known, _same_type(findings[place], known), _overlap, place + 1, findings[place].words)


def _overlap(stated: str, true: str) -> float:
    """Score by the share of the truth's longer words said, in steps of 0.05: a poor proxy for understanding."""
    wanted = {*re.findall(r"[a-z]{5,}", true.lower())}
    spoken = {word[:5] for word in re.findall(r"[a-z]{5,}", stated.lower())}
    share = sum(word[:5] in spoken for word in wanted) / len(wanted) if wanted else 0.0
    return round(min(1.0, 0.25 + share) * 20) / 20


# By words.


TARGET_FROM, PART_FROM = 0.3, 0.15  # shares of the known cause's words
SHORTEST_WORD, STEM = 4, 5  # letters
MOST_WORDS = 20_000


def judge_by_wording(messages: Messages) -> str:
    """Write the judgement in the form that the prompt asks for.

    Raises BaselineRefusedError where the prompt holds no audit to judge.
    """
    material = read_material(messages)
    audit = material.audit[:LONGEST_AUDIT]
    findings, stated = _numbered_findings(audit)
    classes = [_class_by_wording(finding, material.known, material.contract) for finding in findings]
    verdict, target = _verdict(audit, stated, findings), _target_by_wording(findings, classes, material.known)
    return judgement(material, findings, classes, "words of the known cause that the finding says", verdict, target)


def _numbered_findings(audit: str) -> tuple[list[ClaimedFinding], Mapping[str, Any]]:
    """Read the findings of an audit, from its numbered list where it has one."""
    findings, stated = read_findings(audit)
    numbered = [] if stated else LOOKS["numbered"].findall(audit)[:MOST_FINDINGS]
    return ([in_prose(text) for text in numbered], {}) if numbered else (findings, stated)


def _stems(text: str) -> set[str]:
    """List the first STEM letters of a text's longer words, parts of identifiers included."""
    words = (
        part
        for word in LOOKS["word"].findall(text)[:MOST_WORDS]
        for part in (word, *LOOKS["part_of_name"].findall(word))
    )
    return {word.lower()[:STEM] for word in words if len(word) >= SHORTEST_WORD}


def _share(stated: str, known: str) -> float:
    wanted = _stems(known)
    return len(wanted & _stems(stated)) / len(wanted) if wanted else 0.0


def _cause(known: Mapping[str, Any]) -> str:
    """Choose the text to compare findings with: root cause or attack, or where neither is known, type and functions."""
    cause = known.get("root_cause") or known.get("attack_scenario")
    return str(cause or f"{known.get('vulnerability_type')} {' '.join(known.get('vulnerable_functions') or ())}")


def _class_by_wording(finding: ClaimedFinding, known: Mapping[str, Any], contract: str) -> str:
    share = _share(finding.words, _cause(known)) if known.get("is_vulnerable") else 0.0
    if share >= TARGET_FROM:
        return "TARGET_MATCH"
    called = {name for name in LOOKS["called"].findall(finding.words) if len(name) >= SHORTEST_WORD}
    if called and not any(name in contract for name in called):
        return "HALLUCINATED"
    if share >= PART_FROM:
        return "PARTIAL_MATCH"
    if LOOKS["no_finding"].search(finding.words):
        return "INFORMATIONAL"
    if LOOKS["trusted"].search(finding.words):
        return "DESIGN_CHOICE"
    return "MISCHARACTERIZED" if LOOKS["attack"].search(finding.words) else "SECURITY_THEATER"


def _verdict(
    audit: str, stated: Mapping[str, Any], findings: Sequence[ClaimedFinding]
) -> tuple[bool | None, float | None]:
    if stated:
        return stated_verdict(stated)
    said = False if LOOKS["safe"].search(audit) else True if LOOKS["unsafe"].search(audit) or findings else None
    confidence = LOOKS["confidence"].search(audit)
    return said, min(1.0, float(confidence[1])) if confidence else None


def _target_by_wording(
    findings: Sequence[ClaimedFinding], classes: Sequence[str], known: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Judge the target by the matching finding that shares most words with the known cause."""
    targets = [place for place, kind in enumerate(classes) if kind == "TARGET_MATCH"]
    if not targets:
        return assessment(known, "partial" if "PARTIAL_MATCH" in classes else "not_mentioned", _score)
    place = max(targets, key=lambda each: _share(findings[each].words, _cause(known)))
    return assessment(known, _type_match(findings[place], known), _score, place + 1, findings[place].words)


def _score(stated: str, true: str) -> float:
    """Score by the share of the known words, in the rubric's five levels: a poor proxy for understanding."""
    return min(1.0, round(_share(stated, true) * 2 * 4) / 4)


def _type_match(finding: ClaimedFinding, known: Mapping[str, Any]) -> str:
    true = str(known.get("vulnerability_type") or "")
    beginning = re.split(r"[:.]", finding.words, maxsplit=1)[0] if finding.type is None else finding.type
    if _letters(true) == _letters(beginning):
        return "exact"
    if families(beginning) & families(true):
        return "semantic"
    return "wrong" if families(beginning) else "not_mentioned"


def _letters(text: str) -> str:
    return " ".join(re.findall(r"[a-z]+", text.lower()))
