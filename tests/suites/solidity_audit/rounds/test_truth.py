"""Recorded ground truths are read in the field names that they have; what they do not say is unknown."""

from typing import Any

import pytest

from core.errors import SourceError
from suites.solidity_audit.rounds.truth import cluster_of, read_truth
from suites.solidity_audit.truth import GroundTruth
from tests.suites.solidity_audit.rounds.material import TRUTH


def test_a_truth_is_read_from_where_the_round_keeps_it() -> None:
    assert read_truth(TRUTH) == GroundTruth(
        is_vulnerable=True,
        vulnerability_type="reentrancy",
        severity="high",
        vulnerable_functions=["withdraw"],
        difficulty_tier=2,
    )


@pytest.mark.parametrize(
    ("stated", "read"),
    [
        ({"is_vulnerable": False}, {}),
        ({"is_vulnerable": "No", "vulnerability_type": " ", "severity": 3}, {}),
        ({"is_vulnerable": "false", "attack_vector": "Call twice.", "correct_fix": "Write it first."},
         {"attack_scenario": "Call twice.", "fix": "Write it first."}),
        ({"is_vulnerable": False, "vulnerable_location": {"function_names": ["a", " ", 3, "b"]}},
         {"vulnerable_functions": ["a", "b"]}),
        ({"is_vulnerable": False, "vulnerable_lines": ["8", 9, 0, -1, True, "x", 2.5]}, {"vulnerable_lines": [8, 9]}),
        ({"is_vulnerable": False, "vulnerable_location": "withdraw", "vulnerable_functions": {}}, {}),
        ({"is_vulnerable": False, "difficulty_tier": "3"}, {"difficulty_tier": 3}),
        ({"is_vulnerable": False, "difficulty_tier": "hard"}, {}),
        ({"is_vulnerable": False, "surprise": 1}, {}),
    ],
)  # fmt: skip
def test_what_is_told_in_other_words_is_read_and_what_is_none_is_unknown(
    stated: dict[str, Any], read: dict[str, Any]
) -> None:
    assert read_truth(stated) == read_truth({"ground_truth": stated}) == GroundTruth(is_vulnerable=False, **read)


@pytest.mark.parametrize("stated", [{}, {"is_vulnerable": None}, {"is_vulnerable": "perhaps"}, {"ground_truth": []}])
def test_a_truth_that_does_not_say_whether_it_is_vulnerable_is_refused(stated: dict[str, Any]) -> None:
    with pytest.raises(SourceError, match="is_vulnerable"):
        read_truth(stated)


def test_lines_that_no_table_can_hold_are_refused() -> None:
    with pytest.raises(SourceError, match="vulnerable_lines"):
        read_truth({"is_vulnerable": False, "vulnerable_lines": [2**40]})


@pytest.mark.parametrize(
    ("stated", "cluster"),
    [
        ({"original_id": "box"}, "box"),
        ({"original_id": "box", "base_id": "base"}, "base"),
        ({"base_id": "base", "cluster": "pair"}, "pair"),
        ({"cluster": " "}, None),
        ({"cluster": 7}, None),
        ({"cluster": "a\ud800"}, None),
        ({}, None),
    ],
)
def test_variants_of_one_base_hang_together(stated: dict[str, Any], cluster: str | None) -> None:
    assert cluster_of(stated) == cluster
