"""Events over real WebSockets: in order, the current state first, and nobody waits for a client that does not read."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed, InvalidStatus

from evalake.core.errors import LakeError
from evalake.server.scoring.events import Hub, Watch
from evalake.server.scoring.queue import Queue
from evalake.server.scoring.scorings import Scorings, State
from tests.integration.server.conftest import TOLD
from tests.integration.server.services import Place, Service

Events = list[dict[str, Any]]


def test_what_happens_to_a_scoring_is_told_in_order_whichever_process_was_asked(
    services: tuple[Service, Service], place: Place
) -> None:
    """Asked at the first service, listened to at the second; the table is all that they share."""

    async def listen() -> Events:
        async with services[1].listen() as socket:
            await _subscribe(socket, f"session:{TOLD[0]}")
            await _subscribe(socket, "sessions")
            score_id = await _ask(services[0], TOLD[0])
            events = [await _event(socket, TOLD[0])]
            await _set(place, score_id, "in_progress")
            events += [await _event(socket, TOLD[0]) for _ in range(2)]
            await _set(place, score_id, "completed")
            events += [await _event(socket, TOLD[0]) for _ in range(2)]
            return events

    events = asyncio.run(listen())
    assert [(event["type"], event.get("phase"), event.get("total_score")) for event in events] == [
        ("scoring.pending", None, None),
        ("scoring.started", None, None),
        ("scoring.progress", "analyzing_methodology", None),
        ("scoring.progress", "identifying_missing_tools", None),
        ("scoring.completed", None, 60),
    ]
    (row,) = place.scores(TOLD[0])
    assert {event["score_id"] for event in events} == {row["score_id"]}
    times = [event["timestamp_us"] for event in events]
    assert times == sorted(set(times))


@pytest.mark.parametrize(
    ("number", "states", "told"),
    [
        (2, [], "scoring.pending"),
        (3, ["in_progress"], "scoring.progress"),
        (4, ["in_progress", "completed"], "scoring.completed"),
        (5, ["failed"], "scoring.failed"),
    ],
)
def test_who_comes_late_is_told_the_current_state_first(
    service: Service, place: Place, number: int, states: list[str], told: str
) -> None:
    async def listen() -> dict[str, Any]:
        score_id = await _ask(service, TOLD[number])
        async with service.listen() as early:
            await _subscribe(early, f"session:{TOLD[number]}")
            for state in states:
                await _set(place, score_id, state)
            while (await _event(early, TOLD[number]))["type"] != told:
                pass
        async with service.listen() as late:
            await _subscribe(late, f"session:{TOLD[number]}")
            return await _event(late, TOLD[number])

    assert asyncio.run(listen())["type"] == told


def test_a_client_that_does_not_read_is_dropped_and_harms_nobody(service: Service, place: Place) -> None:
    async def listen() -> tuple[str, bool]:
        async with service.listen() as good, service.listen(max_queue=1) as slow:
            await _subscribe(good, f"session:{TOLD[6]}")
            flood = asyncio.create_task(_flood(slow))
            await _ask(service, TOLD[6])
            told = (await _event(good, TOLD[6]))["type"]
            return told, await flood

    assert asyncio.run(listen()) == ("scoring.pending", True)
    assert service.http.get("/api/v1/status").status_code == 200


def test_a_batch_drops_nobody_who_listens_already_or_comes_while_it_runs() -> None:
    """As many scorings as one request may name begin between two looks of the watch."""
    begun = [{"type": "scoring.started", "session_id": f"s{number}"} for number in range(1000)]
    hub = Hub(lambda _: None, lambda: begun)
    early, late = hub.join(), hub.join()
    early.channels.add("sessions")
    for event in begun:
        hub.publish(event)
    hub.receive(late, {"type": "subscribe", "channel": "sessions"})
    assert not early.dropped.is_set()
    assert not late.dropped.is_set()
    assert (early.waiting.qsize(), late.waiting.qsize()) == (1000, 1001)


async def _subscribe(socket: ClientConnection, channel: str) -> None:
    await socket.send(json.dumps({"type": "subscribe", "channel": channel}))
    while json.loads(await socket.recv()) != {"type": "subscribed", "channel": channel}:
        pass


async def _event(socket: ClientConnection, session_id: str) -> dict[str, Any]:
    while True:
        event: dict[str, Any] = json.loads(await socket.recv())
        if event.get("session_id") == session_id:
            return event


async def _added(socket: ClientConnection) -> str:
    while (event := json.loads(await socket.recv()))["type"] != "session.added":
        pass
    return str(event["session_id"])


async def _ask(service: Service, session_id: str) -> str:
    answer: httpx.Response = await asyncio.to_thread(service.ask, session_id)
    assert answer.status_code == 202
    return str(answer.json()["score_id"])


async def _set(place: Place, score_id: str, status: str) -> None:
    change: Callable[[str, str], None] = place.set
    await asyncio.to_thread(change, score_id, status)


async def _flood(socket: ClientConnection) -> bool:
    """Ask for long answers and read none, until the service has had enough."""
    question = json.dumps({"type": "unsubscribe", "channel": "session:" + "x" * 900})
    try:
        while True:
            await socket.send(question)
    except ConnectionClosed:
        return True


@pytest.mark.parametrize(
    "message",
    ["", "{", "[]", "null", "1", '"x"', '{"type": "subscribe"}', '{"type": "subscribe", "channel": "runs"}',
     '{"type": "subscribe", "channel": "session:"}', '{"type": "subscribe", "channel": ["sessions"]}',
     '{"type": "shutdown"}', "[" * 4000, "x" * 5000, b"\xff\x00"],
)  # fmt: skip
def test_what_makes_no_sense_is_answered_with_an_error(service: Service, message: str | bytes) -> None:
    async def send() -> tuple[dict[str, Any], dict[str, Any]]:
        async with service.listen() as socket:
            await socket.send(message)
            error = json.loads(await socket.recv())
            await socket.send('{"type": "ping"}')
            return error, json.loads(await socket.recv())

    error, pong = asyncio.run(send())
    assert error["type"] == "error"
    assert error["detail"]
    assert pong == {"type": "pong"}


def test_a_page_of_another_site_may_not_listen(service: Service) -> None:
    async def attempt() -> int:
        with pytest.raises(InvalidStatus) as refused:
            async with service.listen(origin="https://elsewhere.example"):
                pass
        return refused.value.response.status_code

    assert asyncio.run(attempt()) == 401
    assert "handshake" not in service.process.log.read_text()  # to refuse is no error


def test_new_sessions_of_a_source_are_announced_by_every_service(
    services: tuple[Service, Service], place: Place
) -> None:
    async def listen() -> list[str]:
        async with services[0].listen() as one, services[1].listen() as other:
            for listener in (one, other):
                await _subscribe(listener, "sessions")
            place.write("brand-new")
            return [await _added(listener) for listener in (one, other)]

    assert asyncio.run(listen()) == ["brand-new", "brand-new"]
    service, _ = services
    listed = service.http.get("/api/v1/sessions", params={"search": "brand-new"}).json()
    assert [session["session_id"] for session in listed["sessions"]] == ["brand-new"]
    (source,) = service.http.get("/api/v1/status").json()["sources"]
    assert source["state"] == "read"


@pytest.mark.parametrize("error", [LakeError("no table"), FileNotFoundError("part-0"), ValueError("<html>")])
def test_the_watch_goes_on_whatever_a_look_ran_into(
    error: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    looked: asyncio.Queue[State] = asyncio.Queue()

    class Flaky(Scorings):
        def __init__(self) -> None:
            self.looks = 0

        def state(self) -> State:
            self.looks += 1
            if self.looks <= 2:
                raise error
            looked.put_nowait(State())
            return State()

    async def watch() -> None:
        watching = asyncio.create_task(Watch(Flaky(), Queue("nowhere", None, 1), 60).run())
        await asyncio.wait([watching, asyncio.create_task(looked.get())], return_when=asyncio.FIRST_COMPLETED)
        assert not watching.done()
        watching.cancel()

    monkeypatch.setattr("evalake.server.scoring.events.LOOK_SECONDS", 0.001)
    asyncio.run(watch())
    assert [str(error) in record.getMessage() for record in caplog.records if record.name == "evalake.service"] == [
        True
    ]
