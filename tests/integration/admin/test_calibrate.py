"""Which suites have judgements that are known, and which judges were measured on them."""

from dataclasses import replace
from pathlib import Path

import pytest

from evalake.core.errors import UsageError
from evalake.storage.lake import Lake
from evalake.tasks.calibrate import accuracy_known, calibrate, calibrated_suites, calibration_notes
from evalake.tasks.runtime.context import RunContext

pytestmark = pytest.mark.slow

JUDGE = "baseline/overlap-judge"


def test_a_judge_that_was_measured_is_known_from_then_on(audits: RunContext, tmp_path: Path) -> None:
    assert audits.suite_name in calibrated_suites()
    mine = replace(audits, lake=Lake(str(tmp_path / "lake")))
    assert accuracy_known(mine, JUDGE) is None
    assert calibration_notes(mine, [JUDGE]) == []
    table = calibrate(mine, JUDGE)
    known = accuracy_known(mine, JUDGE)
    assert known is not None
    assert known.equals(table)
    (note,) = calibration_notes(mine, [JUDGE])
    assert note.startswith(f"{JUDGE}, calibrated: right where the right judgement is known: ")


def test_a_suite_without_known_judgements_has_none(guard: RunContext) -> None:
    assert accuracy_known(guard, JUDGE) is None
    with pytest.raises(UsageError, match="choose one of solidity_audit"):
        calibrate(guard, JUDGE)
