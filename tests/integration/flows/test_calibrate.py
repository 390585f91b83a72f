"""The flow `calibrate`: judges beside what is known; one that cannot be asked is refused before all."""

from pathlib import Path

import pytest

from evalake.contracts.tables import CALLS
from evalake.core.errors import ProviderError, UsageError
from evalake.flows.calibrate import calibrate
from evalake.storage.lake import Lake
from tests.integration.flows.artifacts import newest_artifact

JUDGES = ["baseline/overlap-judge", "baseline/wording-judge"]


def test_each_judge_has_a_row_for_each_decision_and_a_rerun_asks_nothing(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    rows = calibrate("solidity_audit", JUDGES, lake=lake.uri)
    assert {row["judge"] for row in rows} == {*JUDGES}
    decisions = {judge: {row["decision"] for row in rows if row["judge"] == judge} for judge in JUDGES}
    assert decisions[JUDGES[0]] == decisions[JUDGES[1]] > {"verdict", "target found"}
    description, shown = newest_artifact("judge-calibration")
    assert description == "solidity_audit: accuracy of judges by decision"
    assert [row["decision"] for row in shown] == [row["decision"] for row in rows]
    asked = lake.frame(CALLS).collect().height
    assert asked > 0
    assert calibrate("solidity_audit", JUDGES[:1], lake=lake.uri) == rows[: len(decisions[JUDGES[0]])]
    assert lake.frame(CALLS).collect().height == asked


@pytest.mark.parametrize(
    ("suite", "judge", "error", "named"),
    [
        ("solidity_audit", "nowhere/judge", ProviderError, "nowhere/judge"),
        ("solidity_audit", "baseline/none", ProviderError, "baseline/none"),
        ("command_guard", JUDGES[0], UsageError, "choose one of solidity_audit"),
    ],
)
def test_who_cannot_be_measured_is_named_before_anything_is_asked(
    tmp_path: Path, suite: str, judge: str, error: type[Exception], named: str
) -> None:
    lake = Lake(str(tmp_path / "lake"))
    with pytest.raises(error, match=named):
        calibrate(suite, [judge], lake=lake.uri)
    assert lake.frame(CALLS).collect().is_empty()
