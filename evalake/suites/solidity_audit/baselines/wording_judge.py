"""The judge `baseline/wording-judge`: compares the words of an audit with those of the known root cause and attack.

It goes by what is said where `baseline/overlap-judge` goes by what is named: neither the type of a finding nor its
lines count, and a verdict or a confidence in prose is read from its sentences. So the two disagree where an audit names
the right thing for a wrong reason, or explains the right thing under another name.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from evalake.models.request import Messages
from evalake.suites.solidity_audit.baselines import audits
from evalake.suites.solidity_audit.baselines.audits import LOOKS

TARGET_FROM, PART_FROM = 0.3, 0.15  # shares of the known cause's words
SHORTEST_WORD, STEM = 4, 5  # letters
MOST_WORDS = 20_000
REASON = "words of the known cause that the finding says"


def answer(messages: Messages) -> str:
    """Write the judgement in the form that the prompt asks for.

    Raises BaselineRefusedError where the prompt holds no audit to judge.
    """
    material = audits.read_material(messages)
    audit = material.audit[: audits.LONGEST_AUDIT]
    findings, stated = _findings(audit)
    classes = [_classify(finding, material.known, material.contract) for finding in findings]
    verdict, target = _verdict(audit, stated, findings), _assess(findings, classes, material.known)
    return audits.judgement(material, findings, classes, REASON, verdict, target)


def _findings(audit: str) -> tuple[list[audits.ClaimedFinding], Mapping[str, Any]]:
    """Read the findings of an audit, from its numbered list where it has one."""
    findings, stated = audits.read_findings(audit)
    numbered = [] if stated else LOOKS["numbered"].findall(audit)[: audits.MOST_FINDINGS]
    return ([audits.in_prose(text) for text in numbered], {}) if numbered else (findings, stated)


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


def _classify(finding: audits.ClaimedFinding, known: Mapping[str, Any], contract: str) -> str:
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
    audit: str, stated: Mapping[str, Any], findings: Sequence[audits.ClaimedFinding]
) -> tuple[bool | None, float | None]:
    if stated:
        return audits.stated_verdict(stated)
    said = False if LOOKS["safe"].search(audit) else True if LOOKS["unsafe"].search(audit) or findings else None
    confidence = LOOKS["confidence"].search(audit)
    return said, min(1.0, float(confidence[1])) if confidence else None


def _assess(
    findings: Sequence[audits.ClaimedFinding], classes: Sequence[str], known: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Judge the target by the matching finding that shares most words with the known cause."""
    targets = [place for place, kind in enumerate(classes) if kind == "TARGET_MATCH"]
    if not targets:
        return audits.assessment(known, "partial" if "PARTIAL_MATCH" in classes else "not_mentioned", _score)
    place = max(targets, key=lambda each: _share(findings[each].words, _cause(known)))
    return audits.assessment(known, _type_match(findings[place], known), _score, place + 1, findings[place].words)


def _score(stated: str, true: str) -> float:
    """Score by the share of the known words, in the rubric's five levels: a poor proxy for understanding."""
    return min(1.0, round(_share(stated, true) * 2 * 4) / 4)


def _type_match(finding: audits.ClaimedFinding, known: Mapping[str, Any]) -> str:
    true = str(known.get("vulnerability_type") or "")
    beginning = re.split(r"[:.]", finding.words, maxsplit=1)[0] if finding.type is None else finding.type
    if _plain(true) == _plain(beginning):
        return "exact"
    if audits.families(beginning) & audits.families(true):
        return "semantic"
    return "wrong" if audits.families(beginning) else "not_mentioned"


def _plain(text: str) -> str:
    return " ".join(re.findall(r"[a-z]+", text.lower()))
