"""What the API reads: lists, history, statistics, ratings, batches, runs, metrics; and how it presents itself."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from websockets.asyncio.client import connect

from contracts.compile.arrow import conform
from contracts.tables import ROADMAP_MENTIONS
from core.configuration import Configuration
from core.hashing import content_hash
from storage.lake import Lake
from storage.landing import land
from suites.session_review.metrics import BANDS
from tasks.jobs.roadmap.make import make_roadmap
from tasks.runtime.context import RunContext
from tests.service.services import Place, Service
from tests.tasks.jobs.roadmap.scored import absent, land_scores

SESSIONS = ("lists-red", "lists-yellow", "lists-green", "lists-failed", "lists-none")
NAMES = ("team/alerts/42", "a//b/", "/score", "x/score", "50% of a+b?c#d", "two\nlines")


@pytest.fixture(scope="module")
def listed(services: tuple[Service, Service], place: Place) -> Service:
    """A service with a session of every score, and one that was never scored; told from others by their search word."""
    service = services[0]
    for day, session in enumerate(SESSIONS, start=1):
        at = f"2026-04-0{day}T10:00:00Z"
        said = {"role": "assistant", "content": "<b>the disk</b> is full", "at": at}
        call = {"id": "1", "name": "df", "arguments": {"path": "/"}}
        asked = {"role": "assistant", "content": "let me look", "tool_calls": [call], "at": at}
        place.write(session, agent="lister", alert={"about": "needle in a haystack"}, messages=[asked, said])
    place.write(*NAMES, "lists-old")
    _known(service)
    return service


def _known(service: Service) -> None:
    """Ask until the sessions are read: sources are not read more than once in a while."""
    while service.ask(SESSIONS[0]).status_code == 404:
        pass


def test_lists_are_filtered_sorted_and_paged(listed: Service, place: Place) -> None:
    for session, total in zip(SESSIONS[:3], (20, 60, 90), strict=True):
        _complete(place, listed, session, total)
    place.set(listed.ask("lists-failed").json()["score_id"], "failed")

    def names(**parameters: Any) -> list[str]:
        answer = listed.http.get("/api/v1/sessions", params={"search": "NEEDLE", **parameters})
        assert answer.status_code == 200, answer.text
        return [entry["session_id"].removeprefix("lists-") for entry in answer.json()["sessions"]]

    assert names() == ["none", "failed", "green", "yellow", "red"]
    assert names(order="asc", page_size=2, page=2) == ["green", "failed"]
    assert names(sort="score") == ["green", "yellow", "red", "failed", "none"]
    assert names(sort="score", order="asc") == ["red", "yellow", "green", "failed", "none"]
    assert names(min_score=50, max_score=74) == ["yellow"]
    assert names(status=["failed", "not_scored"]) == ["none", "failed"]
    assert names(criteria="current") == ["failed", "green", "yellow", "red"]
    assert names(criteria="obsolete") == []
    assert names(from_us=1775124000000000, to_us=1775124000000000) == ["yellow"]
    assert names(agent=["lister", "another"], session_status="completed") == names()
    assert names(agent="another") == names(alert_type="DiskFull") == names(session_status="failed") == []
    assert names(sort="session", order="asc") == ["failed", "green", "none", "red", "yellow"]
    assert names(sort="tool_calls", min_tool_calls=1, max_tool_calls=1)[0] == "failed"
    assert names(min_tool_calls=2) == names(min_seconds=1) == []
    assert names(max_seconds=0, sort="duration") == names(sort="agent") == names(sort="alert_type")
    assert names(scored_by="api-client", sort="status")[0] == "failed"
    assert sorted(names(scored_by="api-client")) == ["failed", "green", "red", "yellow"]
    ended = listed.score("lists-red").json()["completed_at_us"]
    assert "red" in names(scored_from_us=ended, sort="scored_at")
    assert names(scored_to_us=ended - 60_000_000) == []
    assert names(search="lists-red") == ["red"]
    assert names(search="lists-%") == []
    page = listed.http.get("/api/v1/sessions", params={"search": "needle", "page_size": 2, "page": 3}).json()
    assert (page["total"], page["pages"], len(page["sessions"])) == (5, 3, 1)
    assert {"lister", "disk-agent"} <= set(page["choices"]["agents"])
    assert "DiskFull" in page["choices"]["alert_types"]
    assert page["choices"]["scored_by"] == ["api-client"]
    assert listed.http.get("/api/v1/sessions", params={"sort": "luck"}).status_code == 422


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


def test_history_has_every_scoring_newest_first(listed: Service, place: Place) -> None:
    first = listed.ask("lists-green").json()
    second = listed.ask("lists-green", force=True).json()
    history = listed.http.get("/api/v1/scoring/sessions/lists-green/history").json()["scores"]
    assert [score["score_id"] for score in history] == [second["score_id"], first["score_id"]]
    assert listed.http.get("/api/v1/scoring/sessions/lists-none/history").json()["scores"] == []
    assert listed.http.get("/api/v1/scoring/sessions/nobody/history").status_code == 404
    _complete(place, listed, "lists-green", 90)


def test_people_rate_what_was_scored_and_agreement_is_counted(listed: Service) -> None:
    path = "/api/v1/scoring/sessions/{}/human-rating"
    before = listed.http.get("/api/v1/scoring/statistics").json()["agreement"]["n"]
    assert listed.http.put(path.format("lists-none"), json={"score": 50}).status_code == 404
    for wrong in ({"score": 101}, {"score": -1}, {"score": "x"}, {"score": None}, {}, {"score": 50, "by": "me"}):
        assert listed.http.put(path.format("lists-red"), json=wrong).status_code == 422
    for given in (80, 30):  # the second replaces the first
        rated = listed.http.put(path.format("lists-red"), json={"score": given, "note": "<i>too kind</i>"})
        assert rated.status_code == 200
    ratings = listed.http.get(path.format("lists-red")).json()["ratings"]
    assert [(rating["score"], rating["rated_by"]) for rating in ratings] == [(30.0, "api-client")]
    assert listed.http.get("/api/v1/sessions/lists-red").json()["human_ratings"] == ratings
    agreement = listed.http.get("/api/v1/scoring/statistics").json()["agreement"]
    assert agreement["n"] == before + 1
    if before == 0:
        assert (agreement["mean_difference"], agreement["mean_absolute_difference"]) == (-10.0, 10.0)
        assert agreement["correlation"] is None


def test_statistics_add_up(listed: Service, place: Place) -> None:
    _complete(place, listed, "lists-green", 90)
    found = listed.http.get("/api/v1/scoring/statistics").json()
    counts = found["sessions"]
    assert counts["total"] == sum(count for name, count in counts.items() if name != "total")
    assert sum(bucket["count"] for bucket in found["distribution"]) == found["scores"]["n"] == counts_of(found["bands"])
    assert found["bands"].keys() == BANDS.keys()
    assert [bucket["low"] for bucket in found["distribution"]] == list(range(0, 100, 10))
    assert sum(point["n"] for point in found["trend"]) >= found["scores"]["n"]
    assert any(point["current"] for point in found["trend"])


def test_the_roadmap_is_the_last_one_that_was_made_with_the_sessions_behind_it(
    listed: Service, place: Place, tmp_path: Path
) -> None:
    none = listed.http.get("/api/v1/scoring/roadmap").json()
    assert (none["roadmap_id"], none["sessions"], none["kinds"]) == (None, 0, [])
    elsewhere = Lake(str(tmp_path / "lake"))
    land_scores(elsewhere, ("wanting", 40, absent("x-ray", because="it would have shown it")))
    made = make_roadmap(RunContext("roadmap", "session_review", elsewhere, Configuration()), None)
    land(place.lake, ROADMAP_MENTIONS, conform(made.to_dicts(), ROADMAP_MENTIONS))
    found = listed.http.get("/api/v1/scoring/roadmap").json()
    assert (found["roadmap_id"], found["judge"], found["sessions"]) == (made["roadmap_id"][0], None, 1)
    (theme,) = (each for kind in found["kinds"] for each in kind["themes"])
    assert (theme["theme"], theme["sessions"], theme["mean_score"], theme["points_lost"]) == ("x-ray", 1, 40.0, 60.0)
    assert theme["mentions"] == [{"session_id": "wanting", "name": "x-ray", "text": "it would have shown it"}]


def counts_of(bands: dict[str, int]) -> int:
    return sum(bands.values())


def test_a_batch_says_what_became_of_each(listed: Service, place: Place) -> None:
    place.write("batch-1", "batch-2")
    wanted = ["batch-1", "batch-2", "batch-1", "lists-red", "still-going", "nobody"]
    answer = listed.http.post("/api/v1/scoring/batch", json={"session_ids": wanted})
    while {refusal["session_id"] for refusal in answer.json()["refused"]} >= {"batch-1"}:
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
    for wrong in ({}, {"session_ids": []}, {"session_ids": ["a"], "obsolete": True}, {"session_ids": "a"}):
        assert listed.http.post("/api/v1/scoring/batch", json=wrong).status_code == 422


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
    assert [(each["current_prompt_used"], each["total_score"]) for each in history] == [(True, 60), (False, 55)]


@pytest.mark.parametrize("session", NAMES)
def test_whatever_a_session_is_called_it_can_be_asked_for(listed: Service, place: Place, session: str) -> None:
    named = quote(session, safe="")
    scoring = f"/api/v1/scoring/sessions/{named}"
    answer = listed.ask(named)
    assert (answer.status_code, answer.json()["session_id"]) == (202, session)
    place.set(answer.json()["score_id"], "completed")
    assert listed.score(named).json()["session_id"] == session
    assert listed.http.get(f"/api/v1/sessions/{named}").json()["score"]["total_score"] == 60
    assert len(listed.http.get(f"{scoring}/history").json()["scores"]) == 1
    assert listed.http.put(f"{scoring}/human-rating", json={"score": 50}).json()["session_id"] == session
    assert len(listed.http.get(f"{scoring}/human-rating").json()["ratings"]) == 1
    asyncio.run(_told(listed, session, "scoring.completed"))
    assert listed.http.get(f"/sessions/{named}").headers["content-type"].startswith("text/html")


async def _told(service: Service, session: str, what: str) -> None:
    """Listen to the session until that is told: at once, or soon."""
    async with connect(service.socket_url) as socket:
        await socket.send(json.dumps({"type": "subscribe", "channel": f"session:{session}"}))
        while (event := json.loads(await asyncio.wait_for(socket.recv(), 60)))["type"] != what:
            assert event.get("session_id", session) == session


def test_runs_and_metrics_of_every_suite_are_there(listed: Service) -> None:
    runs = listed.http.get("/api/v1/runs", params={"suite": "session_review"}).json()
    assert runs["total"] >= 1
    assert {run["origin"] for run in runs["runs"]} == {"import"}
    assert listed.http.get("/api/v1/runs", params={"suite": "nothing"}).json()["runs"] == []
    metrics = listed.http.get("/api/v1/metrics").json()
    assert {suite["name"] for suite in metrics["suites"]} >= {"command_guard", "session_review", "solidity_audit"}
    assert metrics["points"] == []


def test_the_dashboard_is_where_nothing_else_is(service: Service) -> None:
    pages = [service.http.get(path) for path in ("/", "/trends", "/runs", "/sessions/any/id%20at%20all")]
    assert {(page.status_code, page.headers["content-type"]) for page in pages} == {(200, "text/html; charset=utf-8")}
    assert len({page.text for page in pages}) == 1
    loaded = re.findall(r'(?:src|href)="(/[^"]+\.(?:js|css|svg))"', pages[0].text)
    assert [service.http.get(path).status_code for path in loaded] == [200] * 3
    for path in ("/nothing", "/..%2f..%2fREADME.md", "/js/..%2f..%2fapp.py", "/api/v1/nothing"):
        assert service.http.get(path).status_code == 404


@pytest.mark.parametrize("path", ["/api/v1/status", "/api/v1/sessions/nobody", "/nothing/here", "/api/v1/openapi.json"])
def test_every_answer_forbids_what_a_page_does_not_need(service: Service, path: str) -> None:
    headers = service.http.get(path).headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert "server" not in headers


def _complete(place: Place, service: Service, session: str, total: int) -> None:
    score = service.ask(session).json()
    if score["status"] == "pending":
        place.set(score["score_id"], "completed", total)
