"""A judge's reply -> its judgement: its form is read leniently, its meaning strictly.

Broken JSON, other spellings and further fields are mended, which the reading says, and are no reason to ask again.
Four things are. A reply may be unreadable: cut off, a field missing or of another type, a word that is none of those
allowed. It may answer another question than was asked. It may hold several judgements that differ, or a field twice.
These are its `flaws`. And it may contradict itself (`replies.contradictions`): then it is a judgement, but none that
may be averaged.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AliasChoices, Field, ValidationError

from evalake.core.files import tables_beside
from evalake.sdk.json_in_text import as_share, number_of
from evalake.sdk.lenient_json import LONGEST_REPLY, Found, find_all, find_object
from evalake.sdk.results import Strict, explain
from evalake.suites.solidity_audit.sources.round_fields import in_our_words
from evalake.suites.solidity_audit.sources.round_files import stated_failure
from evalake.suites.solidity_audit.truth import PARTIAL, SCORES, TARGET, VALID, Classification, GroundTruth, TypeMatch

# Where an audit places a vulnerability, against where it is: by function names and by line numbers.


NEAR = 3  # lines: a claim this close points at the place
WIDEST_RANGE = 2_000  # lines of one claimed range; a wider one says nothing

_IDENTIFIER = re.compile(r"[\w$]++")
_WORDS = tables_beside(__file__, "replies.toml")
_INTRODUCING, _COMMON = ({*_WORDS[kind].split()} for kind in ("introducing", "common"))
_LINES, _RANGE = (re.compile(_WORDS["patterns"][name].replace("\n", "")) for name in ("lines", "range"))


def compare(
    location: str, lines: Collection[int], true_functions: Collection[str], true_lines: Collection[int]
) -> dict[str, bool | float | None]:
    """Compare a claim (its location in words, and its lines) with the vulnerable functions and lines.

    Returns the columns of a row; None where the truth names no functions or lines.
    """
    claimed, true = {*lines, *lines_in(location)}, {*true_lines}
    return {
        "location_function_hit": names_function(location, true_functions) if true_functions else None,
        "location_line_hit": any(abs(a - b) <= NEAR for a in true for b in claimed) if true else None,
        "location_line_iou": len(claimed & true) / len(claimed | true) if true else None,
    }


def names_function(location: str, functions: Collection[str]) -> bool:
    """Tell whether one of the functions is named, as a word of its own; `Vault.withdraw(uint256)` names withdraw."""
    words = {*_IDENTIFIER.findall(location)}
    return any(_bare(function) in words for function in functions)


def _bare(function: str) -> str:
    named = function.partition("(")[0].rpartition(".")[2].strip()
    return named.removeprefix("function ").strip() or function


def words_in(location: str) -> set[str]:
    """Find the names in a location, like functions; no numbers, and no words that only introduce lines."""
    return {word for word in _IDENTIFIER.findall(location[:10_000]) if not word.isdigit()} - _INTRODUCING


def lines_in(location: str) -> set[int]:
    """Find the line numbers that a location names, as in `lines 12-15`, `L40`, `Vault.sol:7` or `line 3 and 9`."""
    numbers: set[int] = set()
    for mention in _LINES.finditer(location[:10_000]):
        for first, last in _RANGE.findall(mention[1]):
            low, high = int(first), int(last or first)
            if 0 < low <= high < low + WIDEST_RANGE:
                numbers.update(range(low, high + 1))
    return numbers


# A direct audit -> verdict, confidence and findings, by rule: nobody is asked what can be read.


KEYS = ("verdict", "findings")  # not confidence, which a finding of an audit that was cut off may state, too
VERDICTS: Mapping[str, bool] = {"vulnerable": True, "safe": False}
MOST_LINES = 10_000


@dataclass(frozen=True, slots=True)
class Claim:
    """One finding as the audit states it; None where it does not say, or not in the form that was asked for."""

    type: str | None
    severity: str | None
    location: str | None
    lines: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a structured audit says, and what was mended to read it; None where it cannot be read."""

    said_vulnerable: bool | None
    confidence: float | None  # 0 to 1
    findings: tuple[Claim, ...]
    mended: tuple[str, ...] = ()


def read_prediction(text: str | None) -> Prediction:
    """Read a structured audit. Never raises; what cannot be read is None."""
    found = find_object(text, KEYS) if text else None
    if found is None:
        return Prediction(None, None, ())
    value = found.value
    verdict, findings = value.get("verdict"), value.get("findings")
    is_vulnerable = VERDICTS.get(verdict.strip().lower()) if isinstance(verdict, str) else None
    claims = tuple(map(_claim, findings)) if isinstance(findings, list) else ()
    return Prediction(is_vulnerable, as_share(number_of(value.get("confidence"))), claims, found.mended)


def _claim(finding: Any) -> Claim:
    if not isinstance(finding, dict):
        return Claim(None, None, None, ())
    text = {name: v for name in ("type", "severity", "location") if isinstance(v := finding.get(name), str)}
    lines = finding.get("lines")
    stated = map(number_of, lines[:MOST_LINES]) if isinstance(lines, list) else ()
    numbers = tuple(n for n in stated if type(n) is int and 0 < n < 2**31)
    return Claim(text.get("type"), text.get("severity"), text.get("location"), numbers)


LONGEST_TEXT = 20_000  # characters of any text in a judgement
MOST_FINDINGS = 500
WANTED = ("findings", "target_assessment", "overall_verdict")

Text = Annotated[str, Field(max_length=LONGEST_TEXT)]
Number = Annotated[float, Field(ge=-1e9, le=1e9)]
FindingId = Annotated[int, Field(ge=-(2**31), lt=2**31)]
Reason = Annotated[Text | None, Field(validation_alias=AliasChoices("reason", "reasoning"))]


class Verdict(Strict):
    """What the audit says on the whole; null where it does not say."""

    said_vulnerable: bool | None
    confidence_expressed: Number | None


class Finding(Strict):
    """One finding of the audit, classified."""

    finding_id: FindingId
    classification: Classification
    classification_stated: Text | None = None
    matches_target: bool | None = None
    is_valid_concern: bool | None = None
    vulnerability_type_claimed: Text | None = None
    severity_claimed: Text | None = None
    location_claimed: Text | None = None
    description: Text | None = None
    reason: Reason = None


class Score(Strict):
    """A reasoning score; 0 to 1 where it does not contradict its scale."""

    score: Number
    reason: Reason = None


class TargetAssessment(Strict):
    """Whether the audit found the known vulnerability, and how well it understood it."""

    found: bool
    finding_id: FindingId | None
    type_match: TypeMatch | None
    root_cause_match: bool | None = None
    location_match: bool | None = None
    type_match_reason: Annotated[
        Text | None, Field(validation_alias=AliasChoices("type_match_reason", "type_match_reasoning"))
    ] = None
    root_cause_identification: Score | None
    attack_vector_validity: Score | None
    fix_suggestion_validity: Score | None


class Judgement(Strict):
    """A whole judgement. A safe contract has no target to assess; a verdict that can be read is not asked for.

    The findings of an unlisted one are unknown: rules, elsewhere, counted them without a class.
    """

    findings: Annotated[list[Finding], Field(max_length=MOST_FINDINGS)]
    unlisted: bool = False
    overall_verdict: Verdict | None = None
    target_assessment: TargetAssessment | None = None
    summary: dict[str, Any] | None = None
    notes: Text | None = None

    @property
    def has_target(self) -> bool:
        """Whether a finding is classified as the known vulnerability."""
        return any(finding.classification == TARGET for finding in self.findings)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a judge was asked for; True: needed, False: refused, None: taken as it comes (in recorded results)."""

    target: bool | None
    verdict: bool | None
    recorded: bool = False  # the judgement was made elsewhere, and may have other field names


@dataclass(frozen=True, slots=True)
class Reading:
    """A judgement and what was mended to read it; or what is wrong with the reply, in words for the judge."""

    judgement: Judgement | None
    flaws: tuple[str, ...] = ()
    is_ambiguous: bool = False  # there are judgements, and which one is the judge's own cannot be told
    mended: tuple[str, ...] = ()


def read_judgement(text: str | None, asked: Asked) -> Reading:
    """Read a judge's reply. Never raises, for any reply."""
    if text is None or not text.strip():
        return Reading(None, ("the reply is empty",))
    found, repeated = find_all(text, WANTED)
    if not found:
        beginning = f"; only its first {LONGEST_REPLY:,} characters are read" if len(text) > LONGEST_REPLY else ""
        return Reading(None, (f"the reply holds no JSON object with the field findings{beginning}",))
    readings = [_read(value, asked) for value in found]
    judged: list[Reading] = []
    for reading in readings:
        if reading.judgement is not None and all(reading.judgement != other.judgement for other in judged):
            judged.append(reading)
    if len(judged) > 1:
        # One may be quoted from the contract or the audit, whose authors would then be the judge.
        differ = f"the reply holds {len(judged)} judgements that differ: give one, with each field once"
        return Reading(None, (differ,), is_ambiguous=True)
    if judged and repeated:
        twice = f"the field {repeated[0][:80]} stands twice in one object: give one judgement, with each field once"
        return Reading(None, (twice,), is_ambiguous=True)
    return judged[0] if judged else readings[0]


def _read(found: Found, asked: Asked) -> Reading:
    value = found.value
    if (failure := stated_failure(value)) is not None:
        return Reading(None, (f"the judge failed: {failure}",))
    if not asked.recorded and isinstance(value.get("verdict"), str):
        return Reading(None, ("the object has a verdict, as an audit has: give a judgement of it",))
    mended = dict.fromkeys(found.mended)
    try:
        judgement = Judgement.model_validate(in_our_words(value, mended.setdefault, recorded=asked.recorded))
    except ValidationError as error:
        return Reading(None, explain(error))
    if flaws := tuple(_unasked(judgement, asked)):
        return Reading(None, flaws)
    kept = dict.fromkeys(_beyond(judgement, asked))
    mended |= {f"{name}, which was not asked for": None for name in kept}
    return Reading(judgement.model_copy(update=kept), mended=() if asked.recorded else tuple(mended))


def _unasked(judgement: Judgement, asked: Asked) -> Iterator[str]:
    target = judgement.target_assessment
    if asked.target and target is None:
        yield "target_assessment: the field is missing"
    if asked.target is False and target is not None and target.found:
        yield "target_assessment: leave the field out, this contract has no known vulnerability"
    if asked.target is None and target is None and judgement.has_target:
        yield f"findings: one is classified {TARGET}, but there is no target_assessment"
    if asked.target is False and any(f.classification in (TARGET, PARTIAL) for f in judgement.findings):
        yield f"findings: {TARGET} and {PARTIAL} are no classifications where there is no known vulnerability"
    if asked.verdict and judgement.overall_verdict is None:
        yield "overall_verdict: the field is missing"


def _beyond(judgement: Judgement, asked: Asked) -> Iterator[str]:
    """Name the parts that say more than was asked, and nothing against it."""
    if asked.target is False and judgement.target_assessment is not None:
        yield "target_assessment"
    if asked.verdict is False and judgement.overall_verdict is not None:
        yield "overall_verdict"


# Where a judgement contradicts itself, in words for the judge.


MOST_TOLD = 20
"""How many further contradictions are listed of one judgement."""

_VALID = f"{', '.join(VALID[:-1])} and {VALID[-1]}"


def contradictions(judgement: Judgement) -> list[str]:
    """List all contradictions of a judgement."""
    return [*refusing(judgement), *further(judgement)]


def refusing(judgement: Judgement) -> list[str]:
    """List the contradictions by which the contract of the results refuses a judgement wherever it comes from."""
    contradictions = []
    target = judgement.target_assessment
    if repeated := repeated_ids(judgement):
        contradictions.append(f"several findings have the finding_id {repeated[0]}; give each one of its own")
    if unknown := unknown_ids(judgement):
        contradictions.append(f"target_assessment.finding_id is {unknown[0]}, but no finding has that id")
    if target is not None and not target.found and judgement.has_target:
        contradictions.append(f"a finding is classified {TARGET}, but target_assessment.found is false")
    for name, value in shares(judgement).items():
        if value is not None and not 0 <= value <= 1:
            contradictions.append(f"{name} is {value}, which is not between 0 and 1")
    return contradictions


def further(judgement: Judgement) -> list[str]:
    """List contradictions between the finding named as target, the findings' classes and what is said of each."""
    target = judgement.target_assessment
    contradictions = [] if target is None or judgement.unlisted else list(_of_target(target, judgement))
    of_findings = (each for finding in judgement.findings for each in _of_finding(finding))
    return [*contradictions, *of_findings][:MOST_TOLD]


def _of_target(target: TargetAssessment, judgement: Judgement) -> Iterator[str]:
    number, field = target.finding_id, "target_assessment.finding_id"
    classes = {finding.finding_id: finding.classification for finding in judgement.findings}
    if not target.found:
        if number is not None:
            yield f"target_assessment.found is false, but {field} is {number}; it is null where the target is not found"
    elif number is None:
        yield f"target_assessment.found is true, but {field} is null; it names the finding that is the target"
    elif number in classes and classes[number] not in ((TARGET,) if judgement.has_target else (TARGET, PARTIAL)):
        yield (
            f"target_assessment.found is true and {field} is {number}, but finding {number} is classified "
            f"{classes[number]}; the target is found by a {TARGET}, or where there is none by a {PARTIAL}"
        )


def _of_finding(finding: Finding) -> Iterator[str]:
    kind, about = finding.classification, f"finding {finding.finding_id} is classified {finding.classification}"
    if finding.matches_target is True and kind not in (TARGET, PARTIAL):
        yield f"{about}, but its matches_target is true"
    if finding.matches_target is False and kind == TARGET:
        yield f"{about}, but its matches_target is false"
    if finding.is_valid_concern is not None and finding.is_valid_concern != (kind in VALID):
        stated = str(finding.is_valid_concern).lower()
        yield f"{about}, but its is_valid_concern is {stated}; it is true for {_VALID} alone"


def repeated_ids(judgement: Judgement) -> list[int]:
    """List the ids that more than one finding has."""
    return [number for number, times in Counter(f.finding_id for f in judgement.findings).items() if times > 1]


def unknown_ids(judgement: Judgement) -> list[int]:
    """List the id that is said to be the target's, where no finding has it."""
    target = judgement.target_assessment
    if target is None or not target.found or target.finding_id is None:
        return []
    return [] if target.finding_id in {f.finding_id for f in judgement.findings} else [target.finding_id]


def shares(judgement: Judgement) -> dict[str, float | None]:
    """Collect the numbers that must lie between 0 and 1, by their names in the judgement."""
    target, verdict = judgement.target_assessment, judgement.overall_verdict
    scores = {name: getattr(target, name, None) for name in SCORES.values()}
    return {name: getattr(score, "score", None) for name, score in scores.items()} | {
        "confidence_expressed": None if verdict is None else verdict.confidence_expressed
    }


# The knowledge probe: does a model recognise a contract from its training, and name the incident behind it?


PROBED = ("recognised", "project", "incident", "year", "vulnerability")
SHORTEST = 4
"""Characters from which a word of an incident's name tells it from others."""

_WORD = re.compile(r"[a-z0-9]+")


def probed(text: str | None, truth: GroundTruth) -> Mapping[str, bool | None]:
    """Read the columns about a probe's answer.

    recognised    the model says that it knows the contract; null where it does not say
    contaminated  it does, and names the known incident; null where no incident is known, or it does not say
    """
    found = find_object(text, PROBED) if text else None
    given: Mapping[str, Any] = {} if found is None else found.value
    said = given.get("recognised")
    recognised = said if isinstance(said, bool) else None
    telling = {word for word in words(truth.incident or "") if len(word) >= SHORTEST and word not in _COMMON}
    named = telling & {word for name in ("project", "incident") for word in words(str(given.get(name) or ""))}
    return {
        "recognised": recognised,
        "contaminated": None if recognised is None or not telling else recognised and bool(named),
    }


def words(text: str) -> set[str]:
    """List the words of a name, also those that capitals join: `PolyNetwork` has poly and network."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text)
    return {*_WORD.findall(text.lower()), *_WORD.findall(apart.lower())}
