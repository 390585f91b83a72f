"""The day of a run."""

from datetime import UTC, date, datetime

from tasks.runtime.days import day_of_run


def test_a_run_that_is_made_up_is_of_the_day_that_it_names() -> None:
    assert day_of_run(date(2026, 1, 2)) == date(2026, 1, 2)


def test_any_other_is_of_the_day_on_which_it_is_due() -> None:
    before = datetime.now(UTC).date()
    assert before <= day_of_run() <= datetime.now(UTC).date()
