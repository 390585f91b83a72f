"""Routes over HTTP: many sessions at once, a session whole with its history, and sessions of whatever name."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from evalake.core.hashing import content_hash
from tests.e2e.processes import PrefectStack
from tests.integration.server.services import JUDGE, Place, Service, start
from tests.servers.model_server import ModelServer

SESSIONS = ("one", "two", "three")


@pytest.fixture(scope="module")
def batch_place(tmp_path_factory: pytest.TempPathFactory, judge_server: ModelServer) -> Place:
    place = Place(tmp_path_factory.mktemp("batches"), judge_server)
    place.write(*SESSIONS)
    return place


@pytest.fixture(scope="module")
def batch(idle: PrefectStack, batch_place: Place) -> Iterator[Service]:
    service = start(idle, batch_place)
    yield service
    service.stop()


def estimate(batch: Service, **body: Any) -> dict[str, Any]:
    answer = batch.http.post("/api/v1/scoring/estimate", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_calls_and_price_are_told_before_anything_begins(batch: Service) -> None:
    found = estimate(batch, not_scored=True)
    assert (found["sessions"], found["calls"], found["judge"]) == (3, 6, JUDGE)
    assert 0 < found["usd_low"] < found["usd_high"] < 1
    one = estimate(batch, session_ids=["one", "nobody"])
    assert (one["sessions"], one["calls"]) == (1, 2)
    assert estimate(batch, obsolete=True) == {
        "sessions": 0, "calls": 0, "usd_low": 0.0, "usd_high": 0.0, "judge": JUDGE
    }  # fmt: skip
    assert [batch.score(session).status_code for session in SESSIONS] == [404, 404, 404]


def test_all_that_were_never_scored_are_scored_once(batch: Service) -> None:
    batch.ask("two")
    said = batch.http.post("/api/v1/scoring/batch", json={"not_scored": True}).json()
    assert sorted(score["session_id"] for score in said["accepted"]) == ["one", "three"]
    assert (said["existing"], said["refused"]) == ([], [])
    again = batch.http.post("/api/v1/scoring/batch", json={"not_scored": True}).json()
    assert again == {"accepted": [], "existing": [], "refused": []}
    assert estimate(batch, not_scored=True)["sessions"] == 0
    assert estimate(batch, session_ids=["one"], force_rescore=True)["sessions"] == 0  # it is under way


def test_a_scoring_that_waits_is_cancelled_and_never_begins(
    batch: Service, batch_place: Place, idle: PrefectStack
) -> None:
    batch.ask("one")
    answer = batch.http.post("/api/v1/scoring/sessions/one/cancel")
    assert answer.status_code == 200
    score = answer.json()
    assert (score["status"], score["error_message"]) == ("failed", "it was cancelled by api-client")
    assert score["started_at_us"] is None
    assert score["scored_at_us"] < score["completed_at_us"]
    (run,) = idle.post("/flow_runs/filter", {"flow_runs": {"id": {"any_": [score["flow_run_id"]]}}})
    assert run["state_type"] == "CANCELLED"
    twice = batch.http.post("/api/v1/scoring/sessions/one/cancel")
    over = "the scoring of 'one' is over: it has failed (it was cancelled by api-client)"
    assert (twice.status_code, twice.json()["detail"]) == (409, over)
    assert batch.http.post("/api/v1/scoring/sessions/nobody/cancel").status_code == 404
    again = batch.ask("one", force=True)
    assert (again.status_code, again.json()["replicate"]) == (202, 1)
    assert [row["error_kind"] for row in batch_place.scores("one")] == ["cancelled", None]


def test_a_session_is_shown_whole_and_its_markup_as_text(listed: Service) -> None:
    answer = listed.http.get("/api/v1/sessions/lists-none")
    assert answer.headers["content-type"] == "application/json"
    session = answer.json()
    assert session["score"] is None
    assert "needle" in session["alert"]
    kinds = [interaction["kind"] for interaction in session["stages"][0]["interactions"]]
    assert kinds == ["said", "tool", "said"]
    assert session["stages"][0]["interactions"][2]["text"] == "<b>the disk</b> is full"
    assert session["final_analysis"] == "<b>the disk</b> is full"


def test_scores_under_obsolete_criteria_are_told_and_made_again_at_once(listed: Service, place: Place) -> None:
    old = content_hash("criteria of last year")
    score_id = listed.ask("lists-old").json()["score_id"]
    place.set(score_id, "completed", total=55, criteria_hash=old)
    score = listed.score("lists-old").json()
    assert (score["prompt_hash"], score["current_prompt_used"]) == (old, False)
    found = listed.http.get("/api/v1/sessions", params={"criteria": "obsolete"}).json()["sessions"]
    assert [entry["session_id"] for entry in found] == ["lists-old"]
    figures = listed.http.get("/api/v1/scoring/statistics").json()
    assert figures["scores"]["obsolete"] == 1
    assert [point["n"] for point in figures["trend"] if not point["current"]] == [1]

    place.set(listed.ask("lists-old", force=True).json()["score_id"], "failed")  # the score of before still counts

    said = listed.http.post("/api/v1/scoring/batch", json={"obsolete": True}).json()
    assert [(new["session_id"], new["status"], new["current_prompt_used"]) for new in said["accepted"]] == [
        ("lists-old", "pending", True)
    ]
    assert (said["existing"], said["refused"]) == ([], [])
    again = listed.http.post("/api/v1/scoring/batch", json={"obsolete": True}).json()
    assert again == {"accepted": [], "existing": [], "refused": []}
    place.set(said["accepted"][0]["score_id"], "completed")
    assert listed.http.get("/api/v1/sessions", params={"criteria": "obsolete"}).json()["sessions"] == []
    history = listed.http.get("/api/v1/scoring/sessions/lists-old/history").json()["scores"]
    totals = [(each["current_prompt_used"], each["total_score"]) for each in history]
    assert totals == [(True, 60), (True, None), (False, 55)]
    assert listed.http.get("/api/v1/scoring/sessions/lists-none/history").json()["scores"] == []


def test_a_batch_says_what_became_of_each(listed: Service, place: Place) -> None:
    place.write("batch-1", "batch-2")
    listed.wait_to_know("batch-1")
    wanted = ["batch-1", "batch-2", "batch-1", "lists-red", "still-going", "nobody"]
    answer = listed.http.post("/api/v1/scoring/batch", json={"session_ids": wanted})
    assert answer.status_code == 202
    said = answer.json()
    assert [score["session_id"] for score in said["accepted"]] == ["batch-1", "batch-2"]
    assert [score["session_id"] for score in said["existing"]] == ["lists-red"]
    assert [(refusal["session_id"], refusal["status"]) for refusal in said["refused"]] == [
        ("still-going", 400),
        ("nobody", 404),
    ]
    again = listed.http.post("/api/v1/scoring/batch", json={"session_ids": ["batch-1"], "force_rescore": True}).json()
    assert [refusal["status"] for refusal in again["refused"]] == [409]
    wrong: dict[str, Any]
    both = {"not_scored": True, "obsolete": True}
    for wrong in ({}, {"session_ids": []}, {"session_ids": ["a"], "obsolete": True}, both, {"not_scored": 1}):
        assert listed.http.post("/api/v1/scoring/batch", json=wrong).status_code == 422


NAMES = ("team/alerts/42", "a//b/", "/score", "x/score", "50% of a+b?c#d", "two\nlines")


@pytest.fixture(scope="module")
def named(listed: Service, place: Place) -> Service:
    """A service that knows sessions of all these names."""
    place.write(*NAMES)
    listed.wait_to_know(quote(NAMES[0], safe=""))
    return listed


@pytest.mark.parametrize("session", NAMES)
def test_whatever_a_session_is_called_it_can_be_asked_for(named: Service, place: Place, session: str) -> None:
    path = quote(session, safe="")
    scoring = f"/api/v1/scoring/sessions/{path}"
    answer = named.ask(path)
    assert (answer.status_code, answer.json()["session_id"]) == (202, session)
    place.set(answer.json()["score_id"], "completed")
    assert named.score(path).json()["session_id"] == session
    assert named.http.get(f"/api/v1/sessions/{path}").json()["score"]["total_score"] == 60
    assert len(named.http.get(f"{scoring}/history").json()["scores"]) == 1
    assert named.http.put(f"{scoring}/human-rating", json={"score": 50}).json()["session_id"] == session
    assert len(named.http.get(f"{scoring}/human-rating").json()["ratings"]) == 1
    asyncio.run(_told(named, session, "scoring.completed"))
    assert named.http.get(f"/sessions/{path}").headers["content-type"].startswith("text/html")


async def _told(service: Service, session: str, what: str) -> None:
    """Listen to the session until that is told: at once, or soon."""
    async with service.listen() as socket:
        await socket.send(json.dumps({"type": "subscribe", "channel": f"session:{session}"}))
        while (event := json.loads(await socket.recv()))["type"] != what:
            assert event.get("session_id", session) == session
