"""Which versions of a model answered; tests/integration/tasks/test_missing.py has a run that several did."""

from evalake.tasks.measure import several_versions
from evalake.tasks.runtime.context import RunContext


def test_a_run_of_one_version_has_nothing_to_tell(guard: RunContext) -> None:
    assert several_versions(guard.lake, guard.run_id, {}) == []
