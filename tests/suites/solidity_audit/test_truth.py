"""Ground truth is kept as a sample's target, types and severities in one spelling."""

from suites.solidity_audit.recorded import read_recorded
from suites.solidity_audit.truth import GroundTruth
from tests.suites.solidity_audit.support import (
    line,
    missed,
)


def test_types_and_severities_are_spelled_one_way() -> None:
    spelled = GroundTruth(is_vulnerable=True, vulnerability_type="Weak Randomness ", severity="HIGH")
    sample = read_recorded(line(0, spelled, missed())).item.sample
    assert (sample.category, sample.severity) == ("weak_randomness", "high")
