"""The words of the suite: what a finding can be, how a type can match, how severe and how hard a vulnerability is."""

from collections.abc import Mapping
from typing import Literal, get_args

Classification = Literal[
    "TARGET_MATCH",
    "PARTIAL_MATCH",
    "BONUS_VALID",
    "HALLUCINATED",
    "MISCHARACTERIZED",
    "DESIGN_CHOICE",
    "OUT_OF_SCOPE",
    "SECURITY_THEATER",
    "INFORMATIONAL",
]
TypeMatch = Literal["exact", "semantic", "partial", "wrong", "not_mentioned"]
Severity = Literal["critical", "high", "medium", "low"]

SCORES: Mapping[str, str] = {
    "rcir": "root_cause_identification",
    "ava": "attack_vector_validity",
    "fsv": "fix_suggestion_validity",
}
"""The reasoning scores: their columns, and their names in a judgement."""

TYPE_MATCHES: tuple[str, ...] = get_args(TypeMatch)
CLASSIFICATIONS: tuple[str, ...] = get_args(Classification)
VALID: tuple[str, ...] = CLASSIFICATIONS[:3]
INVALID: tuple[str, ...] = CLASSIFICATIONS[3:]
TARGET, PARTIAL, BONUS = VALID
SEVERITIES: tuple[str, ...] = get_args(Severity)

SEVERITY_WEIGHTS: Mapping[str, float] = {"critical": 3.0, "high": 2.0, "medium": 1.0, "low": 0.5}
INVALID_COSTS: Mapping[str, float] = {
    "HALLUCINATED": 1.0,
    "MISCHARACTERIZED": 1.0,
    "SECURITY_THEATER": 1.0,
    "OUT_OF_SCOPE": 0.5,
    "DESIGN_CHOICE": 0.5,
    "INFORMATIONAL": 0.25,
}
"""What an invalid finding costs its reader, against a hallucinated one."""


def count_column(classification: str) -> str:
    """Name the column of the results that counts the findings of a classification."""
    return f"{classification.lower()}_findings"


def normalised(name: str) -> str:
    """Normalise a type or severity as tables hold it: lower case, words joined by underscores."""
    return "_".join("".join(c if c.isalnum() else " " for c in name.lower()).split())
