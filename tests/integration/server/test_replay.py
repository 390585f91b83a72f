"""Recorded exchanges with TARSy's own scoring API, replayed: the same statuses wherever ours is not meant to differ."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.integration.server.services import Place, Service

pytestmark = pytest.mark.real_data

OVER_TOO = {"s-failed", "s-cancelled", "s-timed_out"}  # sessions that are over, and so can be scored here
NOT_STORED = "get out of range"  # a total of 150 cannot be stored here, and so not be read
GOING_ON = ("s-in_progress", "s-paused")


def test_recorded_exchanges_have_the_same_statuses(service: Service, place: Place, real_data: Path) -> None:
    calls = json.loads((real_data / "tarsy" / "py_scoring_http" / "calls.json").read_text())
    place.write("completed-session", *sorted(OVER_TOO))
    for session in GOING_ON:
        place.write(session, status=session.removeprefix("s-"))
    service.wait_to_know("s-failed")
    replayed = [call["label"] for call in calls if _replay(service, place, call)]
    assert len(replayed) == len(calls) - 1
    assert len(replayed) > 20


def _replay(service: Service, place: Place, call: dict[str, Any]) -> bool:
    session, answered = call["session"], call["json"]
    if call["label"] == NOT_STORED:
        _bring(place, session, "completed")
        return False
    force = bool(call["body"]) and call["body"].get("force_rescore") is True
    if force:
        _bring(place, session, "in_progress" if call["status"] == 409 else "completed")
    elif isinstance(answered, dict) and answered.get("status") in ("in_progress", "completed", "failed"):
        _bring(place, session, answered["status"])
    path = f"/api/v1/scoring/sessions/{session}/score"
    answer = service.http.request(call["method"], path, json=call["body"])
    expected = 202 if session in OVER_TOO else call["status"]
    assert answer.status_code == expected, call["label"]
    if expected == call["status"] and "status" in answered:
        assert answer.json()["status"] == answered["status"], call["label"]
        assert (answer.json()["total_score"] is None) == (answered["total_score"] is None)
    return True


def _bring(place: Place, session: str, status: str) -> None:
    """Bring the newest scoring of a session into a state, by way of those before it; from its end it goes nowhere."""
    rows = place.scores(session)
    now = rows[-1]["status"] if rows else "none"
    if now in ("pending", "in_progress") and now != status:
        place.set(rows[-1]["score_id"], status)
