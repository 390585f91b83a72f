"""A judge's reply -> its judgement: its form is read leniently, its meaning strictly.

Broken JSON, other spellings and further fields are mended, which the reading says, and are no reason to ask again.
Four things are. A reply may be unreadable: cut off, a field missing or of another type, a word that is none of those
allowed. It may answer another question than was asked. It may hold several judgements that differ, or a field twice.
These are its `flaws`. And it may contradict itself (`replies.contradictions`): then it is a judgement, but none that
may be averaged.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AliasChoices, Field, ValidationError

from suites.base.lenient_json import LONGEST_REPLY, Found, find_all
from suites.base.validation import Strict, explain
from suites.solidity_audit.sources.round_fields import in_our_words, stated_failure
from suites.solidity_audit.taxonomy import PARTIAL, TARGET, Classification, TypeMatch

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
    type_match_reason: Annotated[
        Text | None, Field(validation_alias=AliasChoices("type_match_reason", "type_match_reasoning"))
    ] = None
    root_cause_identification: Score | None
    attack_vector_validity: Score | None
    fix_suggestion_validity: Score | None


class Judgement(Strict):
    """A whole judgement. A safe contract has no target to assess; a verdict that can be read is not asked for."""

    findings: Annotated[list[Finding], Field(max_length=MOST_FINDINGS)]
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
    """Read a judge's reply. Never raises, whatever the reply is."""
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
    if flaws := _unasked(judgement, asked):
        return Reading(None, flaws)
    kept = dict.fromkeys(_beyond(judgement, asked))
    mended |= {f"{name}, which was not asked for": None for name in kept}
    return Reading(judgement.model_copy(update=kept), mended=() if asked.recorded else tuple(mended))


def _unasked(judgement: Judgement, asked: Asked) -> tuple[str, ...]:
    target, flaws = judgement.target_assessment, []
    if asked.target and target is None:
        flaws.append("target_assessment: the field is missing")
    if asked.target is False and target is not None and target.found:
        flaws.append("target_assessment: leave the field out, this contract has no known vulnerability")
    if asked.target is None and target is None and judgement.has_target:
        flaws.append(f"findings: one is classified {TARGET}, but there is no target_assessment")
    if asked.target is False and any(f.classification in (TARGET, PARTIAL) for f in judgement.findings):
        flaws.append(f"findings: {TARGET} and {PARTIAL} are no classifications where there is no known vulnerability")
    if asked.verdict and judgement.overall_verdict is None:
        flaws.append("overall_verdict: the field is missing")
    return tuple(flaws)


def _beyond(judgement: Judgement, asked: Asked) -> Iterator[str]:
    """Name the parts that say more than was asked, and nothing against it."""
    if asked.target is False and judgement.target_assessment is not None:
        yield "target_assessment"
    if asked.verdict is False and judgement.overall_verdict is not None:
        yield "overall_verdict"
