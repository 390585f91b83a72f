"""A good judgement, changed ones, and one for each contradiction that the contract refuses."""

import json
from typing import Any

from tests.unit.suites.solidity_audit.support import finding, judgement, target

GOOD = judgement([finding()], target())


def changed(*path: Any, to: Any) -> dict[str, Any]:
    """The good judgement with one value replaced."""
    copy: dict[str, Any] = json.loads(json.dumps(GOOD))
    place: Any = copy
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = to
    return copy


CONTRADICTIONS = {
    "target_match_means_found": judgement([finding()], target(found=False)),
    "found_finding_exists": judgement([finding(1)], target(number=7)),
    "finding_ids_differ": judgement([finding(1), finding(1, "BONUS_VALID")], target()),
    "rcir_is_share": judgement([finding()], target(root_cause_identification={"score": 1.5})),
    "ava_is_share": judgement([finding()], target(attack_vector_validity={"score": -0.1})),
    "fsv_is_share": judgement([], target(found=False, fix_suggestion_validity={"score": 2})),
    "confidence_is_share": judgement([finding()], target(), confidence=95.0),
}
