"""The runner takes a lake's scorings from a queue of their own, and walks many at once in one process."""

from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil
import pytest

from flows.score_session import queue_of
from service.scoring.runner import _Scorings
from storage.cached_table import OpenTable
from storage.lake import Lake
from suites.session_review.contract import RESULTS
from tests.e2e.processes import PrefectStack, wait_until
from tests.servers.model_server import ModelServer
from tests.service.services import Place, Service, start

NAMES = [f"session-{number}" for number in range(20)]
SLOW_SECONDS = 600.0  # longer than the test waits: what ends such an answer ends it from outside
WHY_CANCELLED = "it was cancelled by api-client"
WHY_ENDED = "its process was told to end before the judge had answered: ask for it again"


def test_it_serves_the_queue_of_its_lake(idle: PrefectStack) -> None:
    lake = "/a/lake/of/its/own"
    process = idle.start("service.scoring.runner", "1", lake)
    named = {"deployments": {"name": {"any_": [queue_of(lake)]}}}
    (deployment,) = wait_until(lambda: idle.post("/deployments/filter", named), "the runner's deployment")
    assert lake in deployment["description"]
    process.stop()
    before = deployment["updated"]
    process = idle.start("service.scoring.runner", "1", lake)
    again = wait_until(
        lambda: [each for each in idle.post("/deployments/filter", named) if each["updated"] != before],
        "the queue to be declared anew",  # by which a service knows that its own runner is up
    )
    assert [each["id"] for each in again] == [deployment["id"]]
    process.stop()


class Client:
    """A client of Prefect that counts how often it is asked for flow runs that wait."""

    asked = 0

    def get_scheduled_flow_runs_for_deployments(self, *_: Any, **__: Any) -> list[Any]:
        self.asked += 1
        return []


def test_prefect_is_asked_again_and_again_only_after_the_table_was_written_to(tmp_path: Path) -> None:
    """Each question costs Prefect's server some 30 ms of processor, and a service mostly waits."""
    lake, client = Lake(str(tmp_path / "lake")), Client()
    scorings = _Scorings(client, uuid4(), 1, OpenTable(lake, RESULTS))  # type: ignore[arg-type]
    for _ in range(20):
        scorings.look()
    assert client.asked == 1
    lake.ensure(RESULTS)
    for _ in range(5):
        scorings.look()
    assert client.asked == 1 + 5


@pytest.mark.e2e
def test_twenty_are_asked_at_once_by_one_process_and_each_can_be_ended(tmp_path: Path) -> None:
    with PrefectStack(tmp_path / "prefect") as stack, ModelServer() as judge:
        place = Place(tmp_path, judge)
        place.configuration.write_text(
            place.configuration.read_text().replace("drain_seconds = 30", "drain_seconds = 0")
        )
        place.write(*NAMES)
        place.answer(latency=SLOW_SECONDS)
        service = start(stack, place)
        family = psutil.Process(service.process.popen.pid).children(recursive=True)
        service.http.post("/api/v1/scoring/batch", json={"session_ids": NAMES}).raise_for_status()
        wait_until(lambda: len(judge.requests()) == len(NAMES), "the judge to be asked about all")
        assert psutil.Process(service.process.popen.pid).children(recursive=True) == family  # none was started

        by_api, in_prefect = NAMES[:2]
        runs = {name: _run_of(stack, service, name) for name in (by_api, in_prefect)}
        service.http.post(f"/api/v1/scoring/sessions/{by_api}/cancel").raise_for_status()
        stack.set_state(runs[in_prefect], "CANCELLING", "Cancelling")
        assert service.wait_for(by_api, "failed")["error_message"] == WHY_CANCELLED
        service.wait_for(in_prefect, "failed")
        for run in runs.values():
            stack.wait_for(run, "Cancelled")
        others = [service.score(name).json()["status"] for name in NAMES[2:]]
        assert others == ["in_progress"] * len(others)

        service.stop()
        assert not psutil.wait_procs(family, timeout=60)[1]
        for name in NAMES[2:]:
            (row,) = place.scores(name)
            assert (row["status"], row["error_message"]) == ("failed", WHY_ENDED)


def _run_of(stack: PrefectStack, service: Service, session: str) -> str:
    """The flow run of a session's scoring, once it is under way."""
    score_id = service.wait_for(session, "in_progress")["score_id"]
    runs = stack.post("/flow_runs/filter", {"flow_runs": {"state": {"type": {"any_": ["RUNNING"]}}}})
    (run,) = [run["id"] for run in runs if run["parameters"]["score_id"] == score_id]
    return str(run)
