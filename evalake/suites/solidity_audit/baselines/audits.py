"""What rule-based judges read: the blocks of a prompt, the audit's findings, the kinds that words name."""

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
