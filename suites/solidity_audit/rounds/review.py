"""An expert's review of an audit, as it was recorded -> what it answers, and which of the audit's findings it is about.

A form that was not filled in ("high|medium|low"), or that names two classes for one finding, answers nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import SequenceMatcher
from typing import Any

from suites.base.sources import storable
from suites.solidity_audit.rounds.judgement import truth_of
from suites.solidity_audit.rounds.round import part_of
from suites.solidity_audit.taxonomy import CLASSIFICATIONS

ALIKE = 0.8
"""How alike a claim and a finding's text must be for them to be the same, from 0 to 1: people copy, and cut."""

LONGEST_COMPARED = 2000  # characters of either text
LONGEST_NOTE = 20_000

CHOICES: Mapping[str, Sequence[str]] = {
    "target_class": ("found", "partial", "missed"),
    "reasoning_quality": ("accurate", "partial", "incorrect"),
    "overall_quality": ("high", "medium", "low"),
}
"""The words that a review answers a question with; any other question is answered by yes or no."""

Answer = str | bool | None


@dataclass(frozen=True, slots=True)
class Claim:
    """What a review says of one finding: the text by which it is recognised, its class where one is stated."""

    text: str
    classification: str | None
    stated: str
    note: str | None


@dataclass(frozen=True, slots=True)
class Review:
    """What a review answers about the audit as a whole, by question, and about its findings."""

    annotator: str | None
    reviewed_at: datetime | None
    answers: Mapping[str, Answer]
    note: str | None
    claims: Sequence[Claim]
    unanswered: Sequence[str]


def read_review(value: Mapping[str, Any]) -> Review:
    """Read a review. Unstated answers are null; questions answered in unknown words are listed in `unanswered`."""
    about, target = part_of(value, "evaluation_info"), part_of(value, "target_assessment")
    summary = part_of(value, "summary")
    stated = {
        "target_found": target.get("found", summary.get("target_found")),
        "target_class": target.get("classification"),
        "type_correct": target.get("type_correct"),
        "location_correct": target.get("location_correct"),
        "reasoning_quality": target.get("reasoning_quality"),
        "overall_quality": summary.get("overall_quality"),
    }
    answers: dict[str, Answer] = {
        name: _choice(answer, CHOICES[name]) if name in CHOICES else _truth(answer) for name, answer in stated.items()
    }
    if stated["target_found"] is None and answers["target_class"] is not None:
        answers["target_found"] = answers["target_class"] != "missed"
    unanswered = [name for name, answer in stated.items() if answer not in (None, "") and answers[name] is None]
    return Review(
        _words(about.get("evaluator") or about.get("annotator") or about.get("reviewer") or value.get("evaluator")),
        _day(about.get("date") or value.get("date")),
        answers,
        _note(target.get("notes"), part_of(value, "flags").get("notes")),
        tuple(_claims(value)),
        unanswered,
    )


def match(claims: Sequence[Claim], findings: Mapping[int, str]) -> list[tuple[Claim, int | None]]:
    """Match each claim with the finding whose text it repeats; a finding goes to the claim that is most like it."""
    likeness = sorted(
        (-_likeness(claim.text, text), number, finding_id)
        for number, claim in enumerate(claims)
        for finding_id, text in findings.items()
    )
    finding_of: dict[int, int] = {}
    for distance, number, finding_id in likeness:
        if -distance >= ALIKE and number not in finding_of and finding_id not in finding_of.values():
            finding_of[number] = finding_id
    return [(claim, finding_of.get(number)) for number, claim in enumerate(claims)]


def _likeness(claim: str, text: str) -> float:
    a, b = _compared(claim), _compared(text)
    if not a or not b:
        return 0.0
    shorter, longer = sorted((a, b), key=len)
    if a == b or (len(shorter) >= 40 and shorter in longer):
        return 1.0
    quick = SequenceMatcher(None, a, b, autojunk=False)
    return quick.ratio() if quick.real_quick_ratio() >= ALIKE and quick.quick_ratio() >= ALIKE else 0.0


def _compared(text: str) -> str:
    return " ".join("".join(c if c.isalnum() else " " for c in text.casefold()).split())[:LONGEST_COMPARED]


def _claims(value: Mapping[str, Any]) -> Iterator[Claim]:
    for name in ("other_findings", "additional_findings", "findings"):
        given = value.get(name)
        for finding in given if isinstance(given, list) else ():
            if isinstance(finding, Mapping):
                stated = _words(finding.get("classification")) or ""
                yield Claim(
                    _words(finding.get("model_claim") or finding.get("claim") or finding.get("description")) or "",
                    _choice(stated, CLASSIFICATIONS),
                    stated,
                    _note(finding.get("reasoning") or finding.get("reason"), finding.get("decision_tree_path")),
                )


def _words(value: Any) -> str | None:
    """Take a text, or join the texts of a list, without the square brackets that the form puts around them."""
    if isinstance(value, list):
        value = " ".join(part for part in value if isinstance(part, str))
    if not isinstance(value, str):
        return None
    text = storable(value).replace("\x00", "?").strip()
    return text.removeprefix("[").removesuffix("]").strip() or None


def _note(*parts: Any) -> str | None:
    return " | ".join(text for part in parts if (text := _words(part)))[:LONGEST_NOTE] or None


def _choice(value: Any, allowed: Sequence[str]) -> str | None:
    chosen = "_".join((_words(value) or "").replace("-", " ").split()).casefold()
    return next((word for word in allowed if word.casefold() == chosen), None)


def _truth(value: Any) -> bool | None:
    stated = truth_of(value)
    return stated if isinstance(stated, bool) else None


def _day(value: Any) -> datetime | None:
    try:
        day = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return day if day is None or day.tzinfo is not None else day.replace(tzinfo=UTC)
