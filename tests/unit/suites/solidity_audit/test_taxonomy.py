"""The suite's words: findings are valid or invalid, each has its column, and names are spelled one way."""

import pytest

from evalake.suites.solidity_audit.contract import RESULTS
from evalake.suites.solidity_audit.truth import (
    CLASSIFICATIONS,
    count_column,
    normalised,
)


def test_results_count_the_findings_of_each_class_in_a_column() -> None:
    assert {count_column(name) for name in CLASSIFICATIONS} <= set(RESULTS.column)


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
