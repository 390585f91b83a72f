"""Missed runs: the times that schedules promised, compared with the runs that there were."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.filters import DeploymentFilter, FlowRunFilter
from prefect.client.schemas.objects import FlowRun, StateType

from evalake.tasks.runtime.server import scheduled_times

TAG = "evalake"  # of every deployment in prefect.yaml, and so of their runs
OURS = DeploymentFilter.model_validate({"tags": {"all_": [TAG]}})
DAY = "day"  # the parameter of flows that can be run for another day
PAGE = 200
MOST_TIMES = 1440  # of one schedule a day: a schedule of every minute


@dataclass(frozen=True, slots=True)
class Missed:
    """A day on which a deployment was started less often than its schedules say."""

    deployment: Any
    day: date
    expected: int
    came: int


def missed_runs(client: SyncPrefectClient, today: date, days: int) -> Iterator[Missed]:
    """Yield missed runs of the last `days` days before today, by the schedules that existed then.

    A run that waits for a worker is late, not missed; one that crashed before it began is missed. A day for which a run
    was made up misses nothing.
    """
    dates = [today - timedelta(days=back) for back in range(days, 0, -1)]
    for deployment in client.read_deployments(deployment_filter=OURS):
        runs = list(_runs(client, deployment, _begin(dates[0])))
        made_up = {str(run.parameters.get(DAY)) for run in runs}
        due = {run.expected_start_time for run in runs if not _died_before_its_start(run)}
        for day in dates:
            expected = set(_expected(deployment, day))
            if expected - due and day.isoformat() not in made_up:
                yield Missed(deployment, day, len(expected), len(expected & due))


def _expected(deployment: Any, day: date) -> Iterator[datetime]:
    """Yield the times of a day at which a deployment should have been started, from each schedule's creation on."""
    begin, end = _begin(day), _begin(day + timedelta(days=1))
    for each in deployment.schedules:
        cron, since = getattr(each.schedule, "cron", None), max(begin, each.created or begin)
        if cron and each.active and not deployment.paused and since < end:
            yield from scheduled_times(cron, each.schedule.timezone, since, end, MOST_TIMES)


def _runs(client: SyncPrefectClient, deployment: Any, begin: datetime) -> Iterator[FlowRun]:
    """Yield every run of a deployment that was due since `begin`."""
    due = {"expected_start_time": {"after_": begin, "before_": datetime.now(UTC)}}
    offset, page = 0, list[FlowRun]()
    while offset == 0 or len(page) == PAGE:
        page = client.read_flow_runs(
            deployment_filter=DeploymentFilter.model_validate({"id": {"any_": [deployment.id]}}),
            flow_run_filter=FlowRunFilter.model_validate(due),
            limit=PAGE,
            offset=offset,
        )
        yield from page
        offset += PAGE


def _died_before_its_start(run: FlowRun) -> bool:
    """Tell whether a run crashed before any of it ran: a worker could not submit it, so nothing was asked."""
    return run.state_type is StateType.CRASHED and run.run_count == 0  # an end sets start_time, too


def _begin(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
