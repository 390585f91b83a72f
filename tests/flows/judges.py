"""Judges for a model server: they read what a judge is shown, and so their judgements hold together."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from core.hashing import content_hash
from suites.base.untrusted import read_delimited
from suites.solidity_audit.baselines import overlap_judge

Messages = Sequence[Mapping[str, Any]]


def strict(messages: Messages) -> str:
    """What the overlap judge says."""
    return overlap_judge.answer([{name: str(value) for name, value in each.items()} for each in messages]) or ""


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
