"""The attempts of a run count from 1, and none ends before it began."""

from evalake.contracts.tables.runs import RUN_ATTEMPTS
from tests.unit.contracts.tables.rows import BEFORE, NOON, broken_by


def test_attempts_count_from_one() -> None:
    assert broken_by(RUN_ATTEMPTS, attempt=1) == []
    assert broken_by(RUN_ATTEMPTS, attempt=0) == ["attempt_from_one"]


def test_one_that_goes_on_has_no_end_and_none_ends_before_it_began() -> None:
    assert broken_by(RUN_ATTEMPTS, ended_at=None) == []
    assert broken_by(RUN_ATTEMPTS, started_at=NOON, ended_at=BEFORE) == ["ends_after_start"]


def test_a_state_is_one_of_those_that_a_run_can_be_in() -> None:
    assert broken_by(RUN_ATTEMPTS, state="crashed") == ["state_known"]
