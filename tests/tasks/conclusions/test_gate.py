"""A run is held against rules: each is passed, failed or undecided; and a rule that means nothing is refused."""

import pytest

from core.errors import UsageError
from tasks.conclusions.gate import hold_gate
from tasks.runtime.context import RunContext
from tests.storage.recorded_lake import MODELS

pytestmark = pytest.mark.slow


def test_a_model_that_blocks_everything_passes_where_the_other_fails(guard: RunContext) -> None:
    rule = "malicious_detection_rate >= 0.75"
    better, worse = (hold_gate(guard.lake, f"{guard.run_id}:{model}", [rule]) for model in reversed(MODELS))
    assert [str(check.decision.verdict) for check in better.checks] == ["PASS"]
    assert [str(check.decision.verdict) for check in worse.checks] == ["FAIL"]


def test_a_baseline_that_no_rule_compares_with_is_said(guard: RunContext) -> None:
    other, rule = f"{guard.run_id}:{MODELS[0]}", "accuracy >= 0.5"
    (note,) = hold_gate(guard.lake, f"{guard.run_id}:{MODELS[1]}", [rule], baseline=other).warnings
    assert note == f'no rule compares with the baseline {other}: one like "no significant drop in accuracy" does'
    compared = hold_gate(guard.lake, guard.run_id, [rule, "no significant drop in accuracy"], baseline=other)
    assert not [each for each in compared.warnings if "no rule compares" in each]


def test_a_change_needs_a_baseline_to_be_one_of(guard: RunContext) -> None:
    with pytest.raises(UsageError, match="--baseline"):
        hold_gate(guard.lake, guard.run_id, ["no significant drop in accuracy"])
