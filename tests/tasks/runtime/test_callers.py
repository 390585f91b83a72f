"""Outside of a run with callers, batches are called as the flow run does.

tests/e2e/test_callers.py has runs whose calls are made by two processes.
"""

from tasks.runtime.callers import callers, callers_of_flow_run


def test_without_a_flow_run_there_are_no_callers() -> None:
    with callers(2):
        assert callers_of_flow_run() == 0
