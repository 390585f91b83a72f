"""A session whole, its history, scores under criteria of before, and what a batch says of each."""

from core.hashing import content_hash
from tests.service.scoring.conftest import complete
from tests.service.services import Place, Service


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
    complete(place, listed, "lists-green", 90)


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
