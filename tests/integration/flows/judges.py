"""Judges for a model server: they read what a judge is shown, and so their judgements hold together."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evalake.core.hashing import content_hash
from evalake.sdk.sample import read_delimited
from evalake.suites.solidity_audit.baselines.judges import judge_by_overlap

Messages = Sequence[Mapping[str, Any]]


def strict(messages: Messages) -> str:
    """What the overlap judge says."""
    return judge_by_overlap([{name: str(value) for name, value in each.items()} for each in messages]) or ""


def doubting(messages: Messages) -> str:
    """The same, but for about half of the audits: in these it takes every finding for a hallucination."""
    said = json.loads(strict(messages))
    if int(content_hash(read_delimited("contract", str(messages[-1]["content"]))), 16) % 2:
        return json.dumps(said)
    for finding in said["findings"]:
        finding |= {"classification": "HALLUCINATED", "matches_target": False, "is_valid_concern": False}
    assessed = said.get("target_assessment")
    if assessed:
        assessed |= dict.fromkeys(assessed, None) | {"found": False, "type_match": "not_mentioned"}
    return json.dumps(said)


def _all_findings(said: Any, **fields: Any) -> None:
    for finding in said["findings"]:
        finding |= fields


def _no_target(said: Any, **fields: Any) -> None:
    scores = ("root_cause_identification", "attack_vector_validity", "fix_suggestion_validity")
    said["target_assessment"] |= {**dict.fromkeys(scores), "found": False, "type_match": "not_mentioned", **fields}


def _invented(said: Any, **fields: Any) -> None:
    """Another finding, which is invented."""
    finding = {"finding_id": 50, "classification": "HALLUCINATED", "matches_target": False, "is_valid_concern": False}
    said["findings"].append(finding | fields)


INVENTED = {"classification": "HALLUCINATED", "matches_target": False, "is_valid_concern": False}
BONUS = {"classification": "BONUS_VALID", "matches_target": False, "is_valid_concern": True}

CONTRADICTIONS: Mapping[str, tuple[Callable[[Any], object], str]] = {
    "found-nowhere": (
        lambda said: said["target_assessment"].update(finding_id=None),
        "found is true, but target_assessment.finding_id is null",
    ),
    "found-by-no-finding": (
        lambda said: said["target_assessment"].update(finding_id=99),
        "finding_id is 99, but no finding has that id",
    ),
    "found-by-an-invention": (lambda said: _all_findings(said, **INVENTED), "but finding 1 is classified HALLUCINATED"),
    "found-by-a-bonus": (lambda said: _all_findings(said, **BONUS), "but finding 1 is classified BONUS_VALID"),
    "not-found-by-a-finding": (
        lambda said: (_all_findings(said, **INVENTED), _no_target(said, finding_id=1)),  # type: ignore[func-returns-value]
        "found is false, but target_assessment.finding_id is 1",
    ),
    "not-found-with-a-match": (
        lambda said: _no_target(said, finding_id=None),
        "a finding is classified TARGET_MATCH, but target_assessment.found is false",
    ),
    "an-invention-is-the-target": (
        lambda said: _invented(said, matches_target=True),
        "finding 50 is classified HALLUCINATED, but its matches_target is true",
    ),
    "the-target-is-not-the-target": (
        lambda said: _all_findings(said, matches_target=False),
        "finding 1 is classified TARGET_MATCH, but its matches_target is false",
    ),
    "an-invention-is-valid": (
        lambda said: _invented(said, is_valid_concern=True),
        "finding 50 is classified HALLUCINATED, but its is_valid_concern is true",
    ),
    "the-target-is-no-concern": (
        lambda said: _all_findings(said, is_valid_concern=False),
        "finding 1 is classified TARGET_MATCH, but its is_valid_concern is false",
    ),
    "two-findings-of-one-id": (lambda said: _invented(said, finding_id=1), "several findings have the finding_id 1"),
    "a-score-beyond-one": (
        lambda said: said["target_assessment"].update(attack_vector_validity={"score": 7}),
        "attack_vector_validity is 7",
    ),
}
"""By name: how a judgement that finding 1 is the target is made to contradict itself, and what its judge is told."""


class ContradictoryJudge:
    """The overlap judge, of whose judgements each of the first contradicts itself in another way.

    It does so always, or where it `repairs`, until it is told. The audits must have been found right by finding 1.
    """

    def __init__(self, *, repairs: bool) -> None:
        self._repairs = repairs
        self._by_prompt: dict[str, str] = {}
        self.told: dict[str, list[str]] = {}  # by name of the contradiction: the last messages that it was sent

    def __call__(self, messages: Messages) -> str:
        """Judge, wrongly."""
        about = str(messages[1]["content"])
        if about not in self._by_prompt:
            self._by_prompt[about] = [*CONTRADICTIONS][len(self._by_prompt)]
        name = self._by_prompt[about]
        self.told.setdefault(name, []).append(str(messages[-1]["content"]))
        said = json.loads(strict(messages))
        if not (self._repairs and len(self.told[name]) > 1):
            CONTRADICTIONS[name][0](said)
        return json.dumps(said)
