"""What a judgement, a ground truth or a review says in its own field names, read into the suite's fields.

Other spellings and names of a judgement's fields, numbers and truth values as text, a score without its object and
further fields leave its meaning as it is. Other values are handed on: the strict reading that follows names them.
A review's question that was not filled in ("high|medium|low"), or that names two classes, is unanswered.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import SequenceMatcher
from typing import Any, Final

from pydantic import ValidationError

from evalake.core.errors import SourceError
from evalake.core.files import tables_beside
from evalake.sdk.json_in_text import number_of
from evalake.sdk.lenient_json import name_of
from evalake.sdk.results import explain
from evalake.sdk.sources import as_json, without_nul
from evalake.suites.solidity_audit.sources.round_files import part_of, text_of
from evalake.suites.solidity_audit.truth import CLASSIFICATIONS, MATCHES, SCORES, TYPE_MATCHES, GroundTruth

_WORDS: Final = tables_beside(__file__, "words.toml")
_FINDING, _SCORE, _VERDICT, _TARGET = (_WORDS[part] for part in ("finding", "score", "verdict", "target"))
OTHER_CLASSES = {word: ours for ours, words in _WORDS["classes"].items() for word in words}
"""Classes of recorded judgements that are no words of the rubric, in lower case, and the rubric's word for each."""

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
    told = [_finding(f, note, recorded=recorded) for f in findings] if isinstance(findings, list) else findings
    kept: dict[str, Any] = {"findings": told}
    if recorded and value.get("unlisted") is True:
        kept["unlisted"] = True
    if verdict is not None:
        known = _known(verdict, _VERDICT, note, every=recorded)
        kept["overall_verdict"] = _read(known, note, numbers=("confidence_expressed",), truths=("said_vulnerable",))
    if target is not None and not (recorded and _is_of_patched(target)):
        kept["target_assessment"] = _target(target, note, recorded=recorded)
    if isinstance(summary := value.get("summary"), Mapping):
        kept["summary"] = summary
    if isinstance(notes := value.get("notes"), str):
        kept["notes"] = notes
    return kept


def _finding(value: Any, note: Note, *, recorded: bool) -> Any:
    known = _known(value, _FINDING, note)
    kept = _read(known, note, numbers=("finding_id",), truths=("matches_target", "is_valid_concern"))
    if not isinstance(kept, dict):
        return kept
    word = kept.get("classification")
    if recorded and isinstance(word, str) and name_of(word) in OTHER_CLASSES:
        return kept | {"classification": OTHER_CLASSES[name_of(word)], "classification_stated": word}
    return _spell(kept, "classification", CLASSIFICATIONS, note)


def found_of(target: Mapping[str, Any]) -> Any:
    """Read whether the target was found; by an assessment that tells complete from partial, it is by either."""
    if (name := next((name for name in _TARGET["found"] if name in target), None)) is not None:
        return truth_of(target[name])
    stated = [truth_of(nothing_of(target.get(name))) for name in ("complete_found", "partial_found")]
    return True in stated if True in stated or False in stated else None


def _is_of_patched(target: Any) -> bool:
    """Tell whether an assessment is about a patched contract, which has no target."""
    return isinstance(target, Mapping) and "false_positive_detected" in target and found_of(target) is None


def _target(value: Any, note: Note, *, recorded: bool) -> Any:
    if recorded and isinstance(value, Mapping) and (found := found_of(value)) is not None:
        value = {**value, "found": found}
    known = _known(value, _TARGET, note, every=recorded)
    kept = _read(known, note, numbers=("finding_id",), truths=("found", *MATCHES))
    if not isinstance(kept, dict):
        return kept
    kept |= {name: None for name in MATCHES if not isinstance(kept.get(name), bool)}
    if kept.get("found") is False:  # then there is nothing to say in the others
        kept = dict.fromkeys(_TARGET) | kept
    kept |= {name: _score(kept[name], note, recorded=recorded) for name in SCORES.values() if name in kept}
    kept = _spell(_read(kept, note, nothings=("type_match",)), "type_match", TYPE_MATCHES, note)
    return {
        name: part for name, part in kept.items() if part is not None or name not in ("type_match_reason", *MATCHES)
    }


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


def read_truth(value: Mapping[str, Any]) -> GroundTruth:
    """Read a recorded ground truth. Raises SourceError where it does not say if the contract is vulnerable."""
    truth = part_of(value, "ground_truth", value)
    place, difficulty = part_of(truth, "vulnerable_location"), part_of(value, "difficulty_fields")
    functions = (
        truth.get("vulnerable_functions")
        or place.get("function_names")
        or place.get("function_name")
        or truth.get("vulnerable_function")
    )
    lines = truth.get("vulnerable_lines") or place.get("line_numbers")
    fields = {
        "is_vulnerable": truth_of(truth.get("is_vulnerable")),
        "vulnerability_type": _text(truth.get("vulnerability_type")),
        "severity": _text(truth.get("severity")),
        "vulnerable_functions": [name.strip() for name in _listed(functions) if isinstance(name, str)],
        "vulnerable_lines": [line for given in _listed(lines) for line in _lines(given)],
        "difficulty_tier": _tier(
            truth.get("difficulty_tier", value.get("difficulty_tier", difficulty.get("difficulty_tier")))
        ),
        "root_cause": _text(truth.get("root_cause")),
        "attack_scenario": _text(truth.get("attack_scenario") or truth.get("attack_vector")),
        "fix": _text(truth.get("fix") or truth.get("correct_fix") or truth.get("fix_description")),
    }
    try:
        return GroundTruth.model_validate(fields)
    except ValidationError as error:
        raise SourceError("; ".join(explain(error))) from error


_BASES = ("cluster", "base_id", "variant_parent_id", "original_id")


def cluster_of(value: Mapping[str, Any]) -> str | None:
    """Read what the sample was made of, where the truth states it: variants of one base form a cluster."""
    return text_of(next((value[name] for name in _BASES if value.get(name)), None))


_COMMA = re.compile(r",(?![^(]*\))")  # but not between the parameters of a function
_LINES = re.compile(r"L?(\d{1,15})(?:\s*[-–]\s*L?(\d{1,15}))?", re.IGNORECASE)
_TIER = re.compile(r"(?:tier|t)?[\s_-]*(\d{1,3})", re.IGNORECASE)


def _text(value: Any) -> str | None:
    """Read a text, or several; an explanation that comes in parts is kept as JSON."""
    texts = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    if isinstance(value, Mapping) and value:
        return as_json(value)
    return ", ".join(text for text in texts if isinstance(text, str) and text.strip()) or None


def _listed(value: Any) -> list[Any]:
    """List what a field states: one thing, several in a text with commas between, or a list of either."""
    given = value if isinstance(value, list) else [value]
    parts = (_COMMA.split(each) if isinstance(each, str) else [each] for each in given)
    return [each for some in parts for each in some if not isinstance(each, str) or each.strip()]


def _lines(given: Any) -> Iterable[int]:
    """Read a line, or a range of lines like `12-15` or {"start": 12, "end": 15}; anything else is none."""
    if isinstance(given, Mapping):
        given = f"{given.get('start', given.get('start_line'))}-{given.get('end', given.get('end_line'))}"
    stated = None if isinstance(given, bool) else _LINES.fullmatch(str(number_of(given)).strip())
    first, last = (int(stated[1]), int(stated[2] or stated[1])) if stated else (0, -1)
    return range(max(first, 1), min(last, first + MOST_LINES) + 1)


def _tier(value: Any) -> int | None:
    stated = None if isinstance(value, bool) else _TIER.fullmatch(str(number_of(value)).strip())
    return int(stated[1]) if stated else None


ALIKE = 0.8
"""How alike a claim and a finding's text must be for them to be the same, from 0 to 1: people copy, and cut."""

LONGEST_COMPARED = 2000  # characters of either text
LONGEST_NOTE = 20_000
MOST_LINES = 10_000  # of a range

CHOICES: Mapping[str, Sequence[str]] = _WORDS["choices"]
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
    text = without_nul(value).strip()
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
