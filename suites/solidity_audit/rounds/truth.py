"""A ground truth in the field names of a recorded round -> the suite's own."""

from collections.abc import Mapping
from typing import Any

from core.errors import SourceError
from suites.base.validation import explain
from suites.solidity_audit.rounds.judgement import number_of, truth_of
from suites.solidity_audit.rounds.round import text_of
from suites.solidity_audit.truth import GroundTruth


def read_truth(value: Mapping[str, Any]) -> GroundTruth:
    """Read a recorded ground truth. Raises SourceError where it does not say if the contract is vulnerable."""
    from pydantic import ValidationError

    stated = value.get("ground_truth")
    truth = stated if isinstance(stated, Mapping) else value
    place = truth.get("vulnerable_location")
    place = place if isinstance(place, Mapping) else {}
    difficulty = value.get("difficulty_fields")
    difficulty = difficulty if isinstance(difficulty, Mapping) else {}
    fields = {
        "is_vulnerable": truth_of(truth.get("is_vulnerable")),
        "vulnerability_type": _text(truth.get("vulnerability_type")),
        "severity": _text(truth.get("severity")),
        "vulnerable_functions": _texts(
            truth.get("vulnerable_functions") or place.get("function_names") or place.get("function_name")
        ),
        "vulnerable_lines": _lines(truth.get("vulnerable_lines") or place.get("line_numbers")),
        "difficulty_tier": _tier(
            truth.get("difficulty_tier", value.get("difficulty_tier", difficulty.get("difficulty_tier")))
        ),
        "root_cause": _text(truth.get("root_cause")),
        "attack_scenario": _text(truth.get("attack_scenario") or truth.get("attack_vector")),
        "fix": _text(truth.get("fix") or truth.get("correct_fix")),
    }
    try:
        return GroundTruth.model_validate(fields)
    except ValidationError as error:
        raise SourceError("; ".join(explain(error))) from error


def cluster_of(value: Mapping[str, Any]) -> str | None:
    """Read what the sample was made of, where the truth states it: variants of one base form a cluster."""
    return text_of(value.get("cluster") or value.get("base_id") or value.get("original_id"))


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value.strip() else None


def _texts(value: Any) -> list[str]:
    given = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return [text for text in given if isinstance(text, str) and text.strip()]


def _lines(value: Any) -> list[int]:
    given = value if isinstance(value, list) else []
    lines = map(number_of, given)
    return [line for line in lines if isinstance(line, int) and not isinstance(line, bool) and line > 0]


def _tier(value: Any) -> int | None:
    tier = number_of(value)
    return tier if isinstance(tier, int) and not isinstance(tier, bool) and tier >= 0 else None
