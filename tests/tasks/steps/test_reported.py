"""Which versions of a model answered; tests/tasks/steps/test_missing.py has a run that several did."""

from tasks.runtime.context import RunContext
from tasks.steps.measure import several_versions


def test_a_run_of_one_version_has_nothing_to_tell(guard: RunContext) -> None:
    assert several_versions(guard.lake, guard.run_id, {}) == []
