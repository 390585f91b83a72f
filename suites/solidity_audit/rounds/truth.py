"""A ground truth in the field names of a recorded round -> the suite's own."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from core.errors import SourceError
from suites.base.json_in_text import number_of
from suites.base.validation import explain
from suites.solidity_audit.rounds.judgement import truth_of
from suites.solidity_audit.rounds.round import part_of, text_of
from suites.solidity_audit.truth import GroundTruth


def read_truth(value: Mapping[str, Any]) -> GroundTruth:
    """Read a recorded ground truth. Raises SourceError where it does not say if the contract is vulnerable."""
    truth = part_of(value, "ground_truth", value)
    place, difficulty = part_of(truth, "vulnerable_location"), part_of(value, "difficulty_fields")
    fields = {
        "is_vulnerable": truth_of(truth.get("is_vulnerable")),
        "vulnerability_type": _text(truth.get("vulnerability_type")),
        "severity": _text(truth.get("severity")),
        "vulnerable_functions": _texts(
            truth.get("vulnerable_functions") or place.get("function_names") or place.get("function_name")
        ),
        "vulnerable_lines": _lines(truth.get("vulnerable_lines") or place.get("line_numbers")),
        "difficulty_tier": _whole(
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
    lines = map(_whole, value if isinstance(value, list) else [])
    return [line for line in lines if line]


def _whole(value: Any) -> int | None:
    number = number_of(value)
    return number if isinstance(number, int) and not isinstance(number, bool) and number >= 0 else None
