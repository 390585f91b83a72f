"""Sessions are found whatever they are called."""

import asyncio
import json
from urllib.parse import quote

import pytest
from websockets.asyncio.client import connect

from tests.service.services import Place, Service

NAMES = ("team/alerts/42", "a//b/", "/score", "x/score", "50% of a+b?c#d", "two\nlines")


@pytest.fixture(scope="module")
def named(listed: Service, place: Place) -> Service:
    """A service that knows sessions of all these names."""
    place.write(*NAMES)
    while listed.http.get(f"/api/v1/sessions/{quote(NAMES[0], safe='')}").status_code == 404:
        pass
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
    async with connect(service.socket_url) as socket:
        await socket.send(json.dumps({"type": "subscribe", "channel": f"session:{session}"}))
        while (event := json.loads(await asyncio.wait_for(socket.recv(), 60)))["type"] != what:
            assert event.get("session_id", session) == session
