"""A judgement in the field names of a recorded round -> the same in the suite's own, and nothing that it does not know.

Where a value is not what the field must be it is handed on as it is: the strict reading that follows names it.
"""

import json
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from suites.solidity_audit.taxonomy import SCORES

_FINDING: Mapping[str, tuple[str, ...]] = {
    "finding_id": ("finding_id", "id", "finding_number"),
    "classification": ("classification", "class"),
    "matches_target": ("matches_target",),
    "is_valid_concern": ("is_valid_concern",),
    "vulnerability_type_claimed": ("vulnerability_type_claimed", "vulnerability_type", "type"),
    "severity_claimed": ("severity_claimed", "severity"),
    "location_claimed": ("location_claimed", "location"),
    "description": ("description", "explanation"),
    "reason": ("reason", "reasoning"),
}
_SCORE: Mapping[str, tuple[str, ...]] = {"score": ("score",), "reason": ("reason", "reasoning")}
_VERDICT: Mapping[str, tuple[str, ...]] = {
    "said_vulnerable": ("said_vulnerable", "is_vulnerable"),
    "confidence_expressed": ("confidence_expressed", "confidence"),
}
_TARGET: Mapping[str, tuple[str, ...]] = {
    "found": ("found", "target_found"),
    "finding_id": ("finding_id",),
    "type_match": ("type_match",),
    "type_match_reason": ("type_match_reason", "type_match_reasoning"),
    **{name: (name,) for name in SCORES.values()},
}

_FAILURES = ("error", "judge_error", "parse_error", "evaluation_error")
_FAILED = frozenset({"error", "failed", "failure"})


def stated_failure(value: Mapping[str, Any]) -> str | None:
    """Find what a file says of a judgement that failed; None where it does not say that it did.

    Evaluation scripts write such files with defaults in all other fields, which are no judgement: "not found" would be
    taken for the judge's word.
    """
    for name in _FAILURES:
        if (words := _words(value.get(name))) is not None:
            return words
    status = value.get("status")
    if value.get("success") is False or (isinstance(status, str) and status.strip().casefold() in _FAILED):
        return f"the judgement failed (status {status})" if isinstance(status, str) else "the judgement failed"
    return None


def _words(said: Any) -> str | None:
    """Write an error as one line; None for an empty one, and for `false`."""
    if isinstance(said, Mapping) and isinstance(said.get("message"), str):
        said = said["message"]
    if said is True:
        return "the judgement failed"
    text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False, default=str) if said else ""
    return " ".join(text.split()) or None


def in_our_words(value: Mapping[str, Any]) -> dict[str, Any]:
    """Translate a recorded judgement into the suite's field names, and drop all other fields."""
    findings, verdict, target = value.get("findings"), value.get("overall_verdict"), value.get("target_assessment")
    kept: dict[str, Any] = {"findings": [_finding(f) for f in findings] if isinstance(findings, list) else findings}
    if verdict is not None:
        known = _every(verdict, _VERDICT)
        kept["overall_verdict"] = _read(known, numbers=("confidence_expressed",), truths=("said_vulnerable",))
    if target is not None:
        kept["target_assessment"] = _target(target)
    if isinstance(summary := value.get("summary"), Mapping):
        kept["summary"] = summary
    if isinstance(notes := value.get("notes"), str):
        kept["notes"] = notes
    return kept


def _finding(value: Any) -> Any:
    kept = _read(_known(value, _FINDING), numbers=("finding_id",), truths=("matches_target", "is_valid_concern"))
    if isinstance(kept, dict) and isinstance(kept.get("classification"), str):
        kept["classification"] = "_".join(kept["classification"].upper().replace("-", " ").split())
    return kept


def _target(value: Any) -> Any:
    kept = _read(_every(value, _TARGET), numbers=("finding_id",), truths=("found",))
    if not isinstance(kept, dict):
        return kept
    kept |= {name: _score(kept[name]) for name in SCORES.values()}
    if isinstance(kept["type_match"], str):
        kept["type_match"] = "_".join(kept["type_match"].lower().replace("-", " ").split())
    return {name: part for name, part in kept.items() if part is not None or name != "type_match_reason"}


def _score(value: Any) -> Any:
    if isinstance(value, Mapping):
        return None if value.get("score") is None else _read(_known(value, _SCORE), numbers=("score",))
    number = number_of(value)
    return {"score": number} if isinstance(number, int | float) and not isinstance(number, bool) else value


def _read(value: Any, numbers: Sequence[str] = (), truths: Sequence[str] = ()) -> Any:
    """Convert the given fields that were recorded as texts into the numbers and truth values that they state."""
    if not isinstance(value, dict):
        return value
    plain = {name: number_of(value[name]) for name in numbers if name in value}
    return value | plain | {name: truth_of(value[name]) for name in truths if name in value}


def number_of(value: Any) -> Any:
    """Convert a text into the number that it states; leave anything else as it is."""
    if not isinstance(value, str):
        return value
    try:
        return int(value)
    except ValueError:
        pass
    try:
        number = float(value)
    except ValueError:
        return value
    return number if isfinite(number) else value


def truth_of(value: Any) -> Any:
    """Convert a text into the truth value that it states; leave anything else as it is."""
    stated = {"true": True, "yes": True, "false": False, "no": False}
    return stated.get(value.strip().casefold(), value) if isinstance(value, str) else value


def _every(value: Any, names: Mapping[str, tuple[str, ...]]) -> Any:
    """Pick the known fields, null where they are not stated."""
    known = _known(value, names)
    return {**dict.fromkeys(names), **known} if isinstance(known, dict) else known


def _known(value: Any, names: Mapping[str, tuple[str, ...]]) -> Any:
    if not isinstance(value, Mapping):
        return value
    stated = {ours: [value[name] for name in theirs if value.get(name) is not None] for ours, theirs in names.items()}
    return {ours: values[0] for ours, values in stated.items() if values}
