"""What came of a run's items: no count is below zero, nor above what it is a part of."""

from evalake.contracts.tables.runs import RUN_COVERAGE
from tests.unit.contracts.tables.rows import broken_by

WHOLE = {"asked": 3, "answered": 2, "without_verdict": 1, "missing": 1}


def test_counts_are_within_what_they_are_a_part_of() -> None:
    assert broken_by(RUN_COVERAGE, **WHOLE, source_rows=None) == []
    assert broken_by(RUN_COVERAGE, **{**WHOLE, "answered": 4}) == ["answered_within_asked"]
    assert broken_by(RUN_COVERAGE, **{**WHOLE, "without_verdict": 3}) == ["without_verdict_within_answered"]
    assert broken_by(RUN_COVERAGE, **{**WHOLE, "missing": -1}) == ["missing_not_negative"]


def test_lines_that_name_no_model_have_empty_names() -> None:
    assert broken_by(RUN_COVERAGE, **WHOLE, model="", judge="", dataset="") == []
