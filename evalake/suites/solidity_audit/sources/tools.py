"""What Slither and Mythril write as JSON, as audits by models of these names; a judge by rules compares them.

    slither SAMPLE.sol --json SLITHER.json         {"success", "error", "results": {"detectors": […]}}
    myth analyze SAMPLE.sol -o json, or jsonv2     {"success", "error", "issues": […]}, or [{"issues": […]}]

Nothing here runs a tool. A file is named like its sample: `SAMPLE.json`, `slither_SAMPLE.json`, `SAMPLE.slither.json`.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from evalake.core.files import tables_beside
from evalake.suites.solidity_audit.baselines import overlap_judge
from evalake.suites.solidity_audit.judge_prompts import judge_request
from evalake.suites.solidity_audit.recorded import asked_of
from evalake.suites.solidity_audit.sources.layout import MYTHRIL, SLITHER, tool_of
from evalake.suites.solidity_audit.truth import GroundTruth, normalised

JUDGE = "baseline/overlap-judge"
NO_RESULT = "the tool gave no result"
_NAMED = re.compile(rf"^(?:{SLITHER}|{MYTHRIL}|myth)[-_.]|[-_.](?:{SLITHER}|{MYTHRIL}|myth)$", re.IGNORECASE)
_NO_CONCERN = ("informational", "optimization")

TYPES = {word: kind for kind, words in tables_beside(__file__, "words.toml")["types"].items() for word in words}
"""Types of vulnerability by Slither's detector or SWC number."""


def sample_of(stem: str) -> str:
    """Name the sample that a tool's file is about."""
    return _NAMED.sub("", stem)


def failure_of(value: Mapping[str, Any]) -> str | None:
    """Read why the tool gave no result; None where it gave one."""
    if value.get("success") is not True or value.get("error"):
        return f"{NO_RESULT}: {' '.join(str(value.get('error') or 'success is not true').split())[:200]}"
    return None


def audit_of(value: Mapping[str, Any]) -> str:
    """Write the tool's findings as a structured audit."""
    findings = list(_slither(value) if tool_of(value) == SLITHER else _mythril(value))
    return json.dumps({"verdict": "vulnerable" if findings else "safe", "confidence": None, "findings": findings})


def judged_by_rules(truth: GroundTruth, audit: str, tool: str) -> str:
    """Judge an audit by the overlap of type, functions and lines with the truth; a tool states no attack and no fix."""
    known = truth.model_copy(update={"attack_scenario": None, "fix": None})
    return overlap_judge.answer(judge_request(JUDGE, "", known, audit, asked_of(truth), tool).messages)


def _slither(value: Any) -> Iterator[Mapping[str, Any]]:
    for found in _maps(value["results"].get("detectors")):
        if str(found.get("impact")).casefold() in _NO_CONCERN:
            continue
        elements = _maps(found.get("elements"))
        names = [str(each.get("name")) for each in elements if each.get("type") == "function"]
        lines = {line for each in elements if each.get("type") == "node" for line in _lines(each)}
        lines = lines or {line for each in elements if each.get("type") == "function" for line in _lines(each)}
        check = str(found.get("check") or "")
        kind = "reentrancy" if check.startswith("reentrancy") else TYPES.get(check, normalised(check))
        yield _finding(kind, found.get("impact"), names, sorted(lines), found.get("description"))


def _mythril(value: Any) -> Iterator[Mapping[str, Any]]:
    for issue in _maps(value["issues"]):
        number = str(issue.get("swc-id") or issue.get("swcID") or "").upper().removeprefix("SWC-")
        told = issue.get("description")
        text = " ".join(map(str, told.values())) if isinstance(told, Mapping) else told
        kind = TYPES.get(number, normalised(str(issue.get("title") or issue.get("swcTitle") or number)))
        name = str(issue.get("function") or "").partition("(")[0]
        line = issue.get("lineno")
        yield _finding(kind, issue.get("severity"), [name] if name else [], [line] if type(line) is int else [], text)


def _finding(kind: str, severity: Any, names: list[str], lines: list[int], text: Any) -> Mapping[str, Any]:
    location = ", ".join(dict.fromkeys(names)) or None
    told = {"type": kind, "severity": str(severity or "").lower(), "explanation": str(text or "")}
    return {**told, "location": location, "lines": lines}


def _lines(element: Mapping[str, Any]) -> list[int]:
    mapping = element.get("source_mapping")
    lines = mapping.get("lines") if isinstance(mapping, Mapping) else None
    return [line for line in lines if type(line) is int] if isinstance(lines, list) else []


def _maps(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []
