"""A run: its state is a known word, it does not end before it began, its price may be unknown."""

from evalake.contracts.tables.runs import RUNS
from tests.unit.contracts.tables.rows import BEFORE, NOON, broken_by


def test_a_run_that_goes_on_has_no_end_and_none_ends_before_it_began() -> None:
    assert broken_by(RUNS, state="running", ended_at=None) == []
    assert broken_by(RUNS, started_at=NOON, ended_at=BEFORE) == ["ends_after_start"]


def test_states_are_known_words() -> None:
    for state in ("running", "completed", "incomplete", "failed"):
        assert broken_by(RUNS, state=state) == []
    assert broken_by(RUNS, state="lost") == ["state_known"]  # which is told from `alive_at`, and never stored


def test_an_unknown_price_is_null_and_none_is_negative() -> None:
    assert broken_by(RUNS, cost_usd=None, input_tokens=None) == []
    assert broken_by(RUNS, cost_usd=-1.0) == ["cost_usd_not_negative"]
