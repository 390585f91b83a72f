"""Calls by subject and judge: an unknown price is null, no count is below zero."""

from evalake.contracts.tables.runs import RUN_CALLS
from tests.unit.contracts.tables.rows import broken_by


def test_counts_and_costs_are_not_below_zero_and_may_be_unknown() -> None:
    assert broken_by(RUN_CALLS, cost_usd=None, input_tokens=None, output_tokens=None, cost_usd_avoided=None) == []
    for column in ("calls_made", "calls_from_ledger"):
        assert broken_by(RUN_CALLS, **{column: -1}) == [f"{column}_not_negative"]
    assert broken_by(RUN_CALLS, cost_usd=-0.01) == ["cost_usd_not_negative"]


def test_a_subject_without_a_judge_has_an_empty_one() -> None:
    assert broken_by(RUN_CALLS, judge="") == []
    assert broken_by(RUN_CALLS, model="") == ["model_not_blank"]
