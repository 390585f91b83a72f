"""The flow `missed`: what can be made up is started once for its day, and anything else is only said.

The days that schedules promised lie in the past, where no schedule of a test was; tests/e2e moves one there.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from prefect import Flow
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterId
from prefect.exceptions import ParameterTypeError

from evalake.admin.maintain import Missed
from evalake.flows.canary import canary
from evalake.flows.missed import missed
from evalake.flows.snapshot import snapshot
from tests.integration.flows.artifacts import newest_artifact

YESTERDAY = datetime.now(UTC).date() - timedelta(days=1)


@dataclass
class Schedules:
    """Deployments of this test, and the days that they are to have missed."""

    missed: list[Missed]

    def add(self, flow: Flow[..., Any], came: int = 0, day: date = YESTERDAY) -> UUID:
        """Deploy a flow that was started less than twice on a day."""
        with get_client(sync_client=True) as client:
            flow_id = client.create_flow(flow)
            deployed = client.create_deployment(flow_id, name=f"of-{len(self.missed)}-{day}", paused=True)
        known = SimpleNamespace(id=deployed, flow_id=flow_id, name="nightly")
        self.missed.append(Missed(known, day, 2, came))
        return deployed


@pytest.fixture
def schedules(monkeypatch: pytest.MonkeyPatch) -> Iterator[Schedules]:
    known = Schedules([])
    monkeypatch.setattr("evalake.flows.missed.missed_runs", lambda client, today, days: known.missed)
    yield known
    with get_client(sync_client=True) as client:
        for each in known.missed:
            client.delete_deployment(each.deployment.id)


def started(deployment: UUID) -> list[Any]:
    """The runs of a deployment."""
    of_it = DeploymentFilter(id=DeploymentFilterId(any_=[deployment]))
    with get_client(sync_client=True) as client:
        return client.read_flow_runs(deployment_filter=of_it)


def test_a_day_that_did_not_come_at_all_is_made_up_once_with_its_day(schedules: Schedules) -> None:
    deployment = schedules.add(snapshot)
    for _ in range(2):
        state = missed(return_state=True)
        assert (state.name, state.message) == ("RunsMissed", "1 days with missed runs, 1 of them made up")
    (run,) = started(deployment)
    assert run.parameters["day"] == YESTERDAY.isoformat()
    assert "make-up" in run.tags
    description, (row,) = newest_artifact("missed-runs")
    assert description.startswith("Runs missed in the 3 days before ")
    assert row == {
        "deployment": "snapshot/nightly", "day": YESTERDAY.isoformat(), "expected": 2, "came": 0, "made_up": True
    }  # fmt: skip


def test_what_means_something_else_a_day_later_or_came_in_part_is_only_said(schedules: Schedules) -> None:
    deployments = [schedules.add(canary), schedules.add(snapshot, came=1)]
    assert missed(return_state=True).message == "2 days with missed runs, 0 of them made up"
    assert [started(deployment) for deployment in deployments] == [[], []]
    assert [row["made_up"] for row in newest_artifact("missed-runs")[1]] == [False, False]


def test_nothing_is_started_where_that_is_not_wanted(schedules: Schedules) -> None:
    deployment = schedules.add(snapshot)
    assert missed(make_up=False, return_state=True).name == "RunsMissed"
    assert started(deployment) == []


def test_where_nothing_was_missed_it_says_so(schedules: Schedules) -> None:
    state = missed(days=5, return_state=True)
    assert state.is_completed()
    assert (state.message or "").startswith("no run was missed in the 5 days before ")


@pytest.mark.parametrize("days", [0, 32])
def test_a_month_at_most_is_looked_at(days: int) -> None:
    with pytest.raises(ParameterTypeError, match="days"):
        missed(days=days)
