"""Outside of a run with callers, a process has all of a provider's limits, and batches are called as the flow run does.

tests/flows/test_callers.py has runs whose calls are made by two processes.
"""

from tasks.runtime.callers import callers, callers_of_flow_run, sharing


def test_a_process_that_is_no_caller_shares_nothing() -> None:
    assert sharing() == 1


def test_without_a_flow_run_there_are_no_callers() -> None:
    with callers(2):
        assert callers_of_flow_run() == 0
