"""What a source gives becomes a sample, or is left out for a stated reason."""

from typing import Any

import pytest

from evalake.suites.solidity_audit.sources import builder
from evalake.suites.solidity_audit.truth import GroundTruth
from tests.unit.suites.solidity_audit.sources.material import SOURCE


@pytest.mark.parametrize(
    "flawed",
    [
        {"is_vulnerable": True},
        {"is_vulnerable": True, "vulnerability_type": " "},
        {"is_vulnerable": True, "vulnerability_type": "dos", "fix": ""},
        {"is_vulnerable": False, "vulnerability_type": "dos"},
        {"is_vulnerable": False, "vulnerable_functions": ["f"]},
        {"is_vulnerable": False, "vulnerable_lines": [1]},
    ],
)
def test_ground_truth_that_no_judge_could_be_asked_with_is_left_out(flawed: dict[str, Any]) -> None:
    assert GroundTruth.model_validate(flawed).flaw is not None
    taken = builder.AuditDatasetBuilder("d")
    taken.add_material("here", builder.Material(SOURCE, flawed, "id"))
    assert [left.reason for left in taken.skipped] == [builder.BAD_TRUTH]


def test_a_patched_twin_has_no_severity() -> None:
    taken = builder.AuditDatasetBuilder("d")
    taken.add_material("here", builder.Material(SOURCE, {"is_vulnerable": False, "severity": "high"}, "id"))
    assert [each.severity for each in taken.samples] == [None]
