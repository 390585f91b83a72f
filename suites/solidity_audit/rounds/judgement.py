"""A judgement as a judge, or a recorded round, wrote it -> the same in the suite's own words, and what was mended.

Other spellings and names of fields, numbers and truth values as text, a score without its object and further fields
leave the meaning as it is. Where a value is not what the field must be it is handed on: the strict reading that follows
names it.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from suites.base.json_in_text import number_of
from suites.base.lenient_json import name_of
from suites.solidity_audit.taxonomy import CLASSIFICATIONS, SCORES, TYPE_MATCHES

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


Note = Callable[[str], None]
"""Takes a note of what was mended, in words."""

_NOTHING = frozenset({"null", "none", "n/a"})
_JUDGEMENT = ("findings", "overall_verdict", "target_assessment", "summary", "notes")
_TRUTHS: Mapping[str, bool] = {"true": True, "yes": True, "false": False, "no": False}


def in_our_words(value: Mapping[str, Any], note: Note = lambda _: None, *, recorded: bool = True) -> dict[str, Any]:
    """Translate a judgement into the suite's field names, and drop all other fields.

    Args:
        value: The judgement as it was written.
        note: Is told what was mended.
        recorded: Whether it was made elsewhere, where what is not said of verdict and target is null.
    """
    findings, verdict, target = value.get("findings"), value.get("overall_verdict"), value.get("target_assessment")
    _note_further(value, _JUDGEMENT, note)
    told = [_finding(f, note) for f in findings] if isinstance(findings, list) else findings
    kept: dict[str, Any] = {"findings": told}
    if verdict is not None:
        known = _known(verdict, _VERDICT, note, every=recorded)
        kept["overall_verdict"] = _read(known, note, numbers=("confidence_expressed",), truths=("said_vulnerable",))
    if target is not None:
        kept["target_assessment"] = _target(target, note, recorded=recorded)
    if isinstance(summary := value.get("summary"), Mapping):
        kept["summary"] = summary
    if isinstance(notes := value.get("notes"), str):
        kept["notes"] = notes
    return kept


def _finding(value: Any, note: Note) -> Any:
    known = _known(value, _FINDING, note)
    kept = _read(known, note, numbers=("finding_id",), truths=("matches_target", "is_valid_concern"))
    return _spell(kept, "classification", CLASSIFICATIONS, note) if isinstance(kept, dict) else kept


def _target(value: Any, note: Note, *, recorded: bool) -> Any:
    kept = _read(_known(value, _TARGET, note, every=recorded), note, numbers=("finding_id",), truths=("found",))
    if not isinstance(kept, dict):
        return kept
    if kept.get("found") is False:  # then there is nothing to say in the others
        kept = dict.fromkeys(_TARGET) | kept
    kept |= {name: _score(kept[name], note, recorded=recorded) for name in SCORES.values() if name in kept}
    kept = _spell(_read(kept, note, nothings=("type_match",)), "type_match", TYPE_MATCHES, note)
    return {name: part for name, part in kept.items() if part is not None or name != "type_match_reason"}


def _score(value: Any, note: Note, *, recorded: bool) -> Any:
    if isinstance(value, Mapping):
        known = _read(_known(value, _SCORE, note), note, numbers=("score",))
        is_unsaid = known.get("score") is None and (recorded or "score" in known)
        return None if is_unsaid else {name: part for name, part in known.items() if part is not None}
    number = _read({"score": value}, note, numbers=("score",))["score"]
    if not isinstance(number, int | float) or isinstance(number, bool):
        return number
    note("a score without its object")
    return {"score": number}


def _spell(value: dict[str, Any], name: str, words: Sequence[str], note: Note) -> dict[str, Any]:
    """Spell a word of the rubric as the rubric does."""
    word = value.get(name)
    spelled = next((each for each in words if isinstance(word, str) and name_of(word) == each.lower()), word)
    if spelled != word:
        note(f"the spelling of {name}")
    return value | {name: spelled} if name in value else value


def _read(
    value: Any, note: Note, numbers: Sequence[str] = (), truths: Sequence[str] = (), nothings: Sequence[str] = ()
) -> Any:
    """Convert the given fields that are texts into the numbers, truth values and nulls that they state."""
    if not isinstance(value, dict):
        return value
    read = {name: number_of(nothing_of(value[name])) for name in numbers if name in value}
    read |= {name: truth_of(nothing_of(value[name])) for name in truths if name in value}
    read |= {name: nothing_of(value[name]) for name in nothings if name in value}
    for name, part in read.items():
        if isinstance(value[name], str) and not isinstance(part, str):
            note(f"{name} as text")
    return value | read


def nothing_of(value: Any) -> Any:
    """Convert a text that states nothing into None; leave anything else as it is."""
    return None if isinstance(value, str) and value.strip().casefold() in _NOTHING else value


def truth_of(value: Any) -> Any:
    """Convert a text into the truth value that it states; leave anything else as it is."""
    return _TRUTHS.get(value.strip().casefold(), value) if isinstance(value, str) else value


def _known(value: Any, names: Mapping[str, tuple[str, ...]], note: Note, *, every: bool = False) -> Any:
    """Pick the known fields by our names; with `every`, null those that are not stated."""
    if not isinstance(value, Mapping):
        return value
    _note_further(value, [name for theirs in names.values() for name in theirs], note)
    kept: dict[str, Any] = dict.fromkeys(names) if every else {}
    for ours, theirs in names.items():
        stated = [name for name in theirs if name in value]
        if stated:
            name = next((name for name in stated if value[name] is not None), stated[0])
            kept[ours] = value[name]
            if name != ours:
                note(f"{name} for {ours}")
    return kept


def _note_further(value: Mapping[str, Any], known: Sequence[str], note: Note) -> None:
    for name in value:
        if name not in known:
            note(f"the further field {name[:60]}")
