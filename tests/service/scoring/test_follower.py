"""Sources are followed."""

import asyncio
import json

from websockets.asyncio.client import connect

from tests.service.services import Place, Service


def test_new_sessions_of_a_source_are_announced_by_themselves(guarded: Service, guarded_place: Place) -> None:
    async def listen() -> str:
        async with connect(guarded.socket_url, additional_headers={"Authorization": "Bearer secret"}) as listener:
            await listener.send('{"type": "subscribe", "channel": "sessions"}')
            assert json.loads(await listener.recv())["type"] == "subscribed"
            guarded_place.write("brand-new")
            while (event := json.loads(await asyncio.wait_for(listener.recv(), 60)))["type"] != "session.added":
                pass
            return str(event["session_id"])

    assert asyncio.run(listen()) == "brand-new"
    allowed = {"authorization": "Bearer secret"}
    listed = guarded.http.get("/api/v1/sessions", params={"search": "brand-new"}, headers=allowed).json()
    assert [session["session_id"] for session in listed["sessions"]] == ["brand-new"]
    (source,) = guarded.http.get("/api/v1/status", headers=allowed).json()["sources"]
    assert source["state"] == "read"
