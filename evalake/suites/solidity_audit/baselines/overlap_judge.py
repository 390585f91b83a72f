"""The judge `baseline/overlap-judge`: compares an audit with the ground truth by type synonyms, functions and lines.

It reads nothing that an audit says about itself: a finding counts by the type, the functions and the lines that it
names.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from evalake.models.request import Messages
from evalake.suites.solidity_audit.baselines import audits
from evalake.suites.solidity_audit.baselines.solidity_code import blank, functions

NEAR = 3  # lines
REASON = "type, function and line overlap"


def answer(messages: Messages) -> str:
    """Write the judgement in the form that the prompt asks for.

    Raises BaselineRefusedError where the prompt holds no audit to judge.
    """
    material = audits.read_material(messages)
    known = material.known
    names = {function.name for function in functions(blank(material.contract, strings=True))}
    findings, stated = audits.read_findings(material.audit)
    classes = [_classify(finding, known, names) for finding in findings]
    said, confidence = audits.stated_verdict(stated)
    if said is None:
        said = True if findings else False if audits.LOOKS["safe"].search(material.audit) else None
    target = _assess(findings, classes, known)
    return audits.judgement(material, findings, classes, REASON, (said, confidence), target)


def _same_type(finding: audits.ClaimedFinding, known: Mapping[str, Any]) -> str:
    """Compare the claimed type with the true one: exact, semantic, wrong or not_mentioned."""
    true = str(known.get("vulnerability_type") or "")
    plain = _plain(finding.type or "")
    if plain and plain == _plain(true):
        return "exact"
    claimed = audits.families(finding.type if finding.type else finding.words)
    if claimed & (audits.families(true) or {true}):
        return "semantic" if finding.type else "exact"
    return "wrong" if claimed or plain else "not_mentioned"


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")


def _same_place(finding: audits.ClaimedFinding, known: Mapping[str, Any]) -> bool:
    words = {*audits.LOOKS["identifier"].findall(finding.location if finding.location else finding.words)}
    if any(str(name) in words for name in known.get("vulnerable_functions") or ()):
        return True
    true = known.get("vulnerable_lines") or ()
    return any(abs(a - b) <= NEAR for a in finding.lines for b in true)


def _classify(finding: audits.ClaimedFinding, known: Mapping[str, Any], names: set[str]) -> str:
    if known.get("is_vulnerable"):
        same, here = _same_type(finding, known) in ("exact", "semantic"), _same_place(finding, known)
        if same and here:
            return "TARGET_MATCH"
        if here and audits.families(finding.words) & audits.families(str(known.get("vulnerability_type") or "")):
            return "PARTIAL_MATCH"
    claimed = audits.LOOKS["called_at"].findall(finding.location or "")
    if claimed and not names & {*claimed, "constructor", "fallback", "receive"}:
        return "HALLUCINATED"
    return "MISCHARACTERIZED" if audits.families(finding.words) else "INFORMATIONAL"


def _assess(
    findings: Sequence[audits.ClaimedFinding], classes: Sequence[str], known: Mapping[str, Any]
) -> Mapping[str, Any]:
    if "TARGET_MATCH" not in classes:
        near = any(_same_place(finding, known) for finding in findings)
        return audits.assessment(known, "wrong" if near else "not_mentioned", _overlap)
    place = classes.index("TARGET_MATCH")
    return audits.assessment(known, _same_type(findings[place], known), _overlap, place + 1, findings[place].words)


def _overlap(stated: str, true: str) -> float:
    """Score by the share of the truth's longer words said, in steps of 0.05: a poor proxy for understanding."""
    wanted = {*re.findall(r"[a-z]{5,}", true.lower())}
    spoken = {word[:5] for word in re.findall(r"[a-z]{5,}", stated.lower())}
    share = sum(word[:5] in spoken for word in wanted) / len(wanted) if wanted else 0.0
    return round(min(1.0, 0.25 + share) * 20) / 20
