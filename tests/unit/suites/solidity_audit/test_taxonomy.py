"""The suite's words: findings are valid or invalid, each has its column, and names are spelled one way."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalake.suites.solidity_audit.contract import RESULTS
from evalake.suites.solidity_audit.truth import (
    BONUS,
    CLASSIFICATIONS,
    INVALID,
    INVALID_COSTS,
    PARTIAL,
    SEVERITIES,
    SEVERITY_WEIGHTS,
    TARGET,
    VALID,
    count_column,
    normalised,
)


def test_a_finding_is_valid_or_invalid() -> None:
    assert VALID + INVALID == CLASSIFICATIONS
    assert (TARGET, PARTIAL, BONUS) == VALID == ("TARGET_MATCH", "PARTIAL_MATCH", "BONUS_VALID")
    assert len(set(CLASSIFICATIONS)) == 9


def test_results_count_the_findings_of_each_class_in_a_column() -> None:
    assert {count_column(name) for name in CLASSIFICATIONS} <= set(RESULTS.column)


def test_every_severity_and_every_invalid_class_has_its_weight() -> None:
    weights = [SEVERITY_WEIGHTS[severity] for severity in SEVERITIES]
    assert weights == sorted(weights, reverse=True)
    assert INVALID_COSTS.keys() == set(INVALID)
    assert max(INVALID_COSTS.values()) == INVALID_COSTS["HALLUCINATED"] == 1


@pytest.mark.parametrize(
    ("name", "spelled"),
    [
        ("Access Control", "access_control"),
        (" weak-randomness ", "weak_randomness"),
        ("DoS (gas)", "dos_gas"),
        ("HIGH", "high"),
        ("Überlauf", "überlauf"),
        ("--", ""),
    ],
)
def test_types_and_severities_are_lower_case_words_joined_by_underscores(name: str, spelled: str) -> None:
    assert normalised(name) == spelled


@given(st.text(max_size=50))
def test_a_name_in_the_suites_spelling_stays_as_it_is(name: str) -> None:
    once = normalised(name)
    assert normalised(once) == once
