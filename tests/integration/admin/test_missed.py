"""What a schedule asked for and did not come is missed; what crashed before it began, too; what was made up is not."""

from datetime import UTC, date, datetime, time, timedelta
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

from prefect.client.schemas.objects import StateType

from evalake.admin.missed import missed_runs

TODAY = date(2026, 3, 10)


def run_of(on: int, state: StateType = StateType.COMPLETED, **parameters: str) -> Any:
    due = datetime(2026, 3, on, 3, tzinfo=UTC)
    count = 0 if state is StateType.CRASHED else 1
    return SimpleNamespace(expected_start_time=due, parameters=parameters, state_type=state, run_count=count)


class Server:
    """What is asked of a Prefect server: one deployment, at three every night since the sixth, and its runs."""

    def __init__(self, *runs: Any) -> None:
        self._runs = list(runs)

    def read_deployments(self, **_: Any) -> list[Any]:
        cron = SimpleNamespace(cron="0 3 * * *", timezone="UTC")
        created = datetime.combine(date(2026, 3, 6), time(), UTC)
        schedules = [SimpleNamespace(schedule=cron, active=True, created=created)]
        return [SimpleNamespace(id=uuid4(), name="nightly", paused=False, schedules=schedules)]

    def read_flow_runs(self, **_: Any) -> list[Any]:
        return self._runs


def test_each_day_is_told_once() -> None:
    made_up = run_of(9, day="2026-03-07")
    server: Any = Server(run_of(6), run_of(8, StateType.CRASHED), made_up)
    found = {missed.day: (missed.expected, missed.came) for missed in missed_runs(server, TODAY, 6)}
    assert found == {date(2026, 3, 8): (1, 0)}


def test_nothing_was_missed_before_there_was_a_schedule() -> None:
    server: Any = Server()
    days = [missed.day for missed in missed_runs(server, TODAY, 9)]
    assert days == [TODAY - timedelta(days=back) for back in (4, 3, 2, 1)]
