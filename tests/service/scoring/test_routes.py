"""Many sessions at once: the price is told first, all that were never scored are, and each can be cancelled."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.processes import PrefectStack
from tests.servers.model_server import ModelServer
from tests.service.services import JUDGE, Place, Service, start

SESSIONS = ("one", "two", "three")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, judge_server: ModelServer) -> Place:
    place = Place(tmp_path_factory.mktemp("batches"), judge_server)
    place.write(*SESSIONS)
    return place


@pytest.fixture(scope="module")
def service(idle: PrefectStack, place: Place) -> Iterator[Service]:
    service = start(idle, place)
    yield service
    service.stop()


def estimate(service: Service, **body: Any) -> dict[str, Any]:
    answer = service.http.post("/api/v1/scoring/estimate", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_calls_and_price_are_told_before_anything_begins(service: Service) -> None:
    found = estimate(service, not_scored=True)
    assert (found["sessions"], found["calls"], found["judge"]) == (3, 6, JUDGE)
    assert 0 < found["usd_low"] < found["usd_high"] < 1
    one = estimate(service, session_ids=["one", "nobody"])
    assert (one["sessions"], one["calls"]) == (1, 2)
    assert estimate(service, obsolete=True) == {
        "sessions": 0, "calls": 0, "usd_low": 0.0, "usd_high": 0.0, "judge": JUDGE
    }  # fmt: skip
    for wrong in ({}, {"not_scored": True, "obsolete": True}, {"not_scored": 1}):
        assert service.http.post("/api/v1/scoring/estimate", json=wrong).status_code == 422
    assert [service.score(session).status_code for session in SESSIONS] == [404, 404, 404]


def test_all_that_were_never_scored_are_scored_once(service: Service) -> None:
    service.ask("two")
    said = service.http.post("/api/v1/scoring/batch", json={"not_scored": True}).json()
    assert sorted(score["session_id"] for score in said["accepted"]) == ["one", "three"]
    assert (said["existing"], said["refused"]) == ([], [])
    again = service.http.post("/api/v1/scoring/batch", json={"not_scored": True}).json()
    assert again == {"accepted": [], "existing": [], "refused": []}
    assert estimate(service, not_scored=True)["sessions"] == 0
    assert estimate(service, session_ids=["one"], force_rescore=True)["sessions"] == 0  # it is under way


def test_a_scoring_that_waits_is_cancelled_and_never_begins(service: Service, place: Place, idle: PrefectStack) -> None:
    service.ask("one")
    answer = service.http.post("/api/v1/scoring/sessions/one/cancel")
    assert answer.status_code == 200
    score = answer.json()
    assert (score["status"], score["error_message"]) == ("failed", "it was cancelled by api-client")
    assert score["started_at_us"] is None
    assert score["scored_at_us"] < score["completed_at_us"]
    (run,) = idle.post("/flow_runs/filter", {"flow_runs": {"id": {"any_": [score["flow_run_id"]]}}})
    assert run["state_type"] == "CANCELLED"
    assert service.http.post("/api/v1/scoring/sessions/one/cancel").status_code == 409
    assert service.http.post("/api/v1/scoring/sessions/nobody/cancel").status_code == 404
    again = service.ask("one", force=True)
    assert (again.status_code, again.json()["replicate"]) == (202, 1)
    assert [row["error_kind"] for row in place.scores("one")] == ["cancelled", None]
