"""Scorings as flow runs: many at once in the service's process, in few commits, and a reason where Prefect is away."""

import asyncio
import json
import socket
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from prefect.settings import PREFECT_API_URL, PREFECT_CLIENT_MAX_RETRIES, temporary_settings
from websockets.sync.client import connect

from evalake.core.configuration import Service as Limits
from evalake.server.scoring.queue import END_SECONDS
from evalake.server.scoring.scorings import ScoringSettings
from evalake.server.server import create_app
from tests.e2e.processes import PATIENCE_SECONDS, PrefectStack, have_ended, wait_until
from tests.integration.server.services import JUDGE, SERVICE, Place, Service, start
from tests.servers.model_server import ModelServer

NAMES = [f"session-{number}" for number in range(20)]
SLOW_SECONDS = 3600.0  # longer than the test waits: what ends such an answer ends it from outside
WHY_CANCELLED = "it was cancelled by api-client"
LONG: Any = dict.fromkeys(("open_timeout", "ping_timeout"), PATIENCE_SECONDS)
WHY_ENDED = "its process was terminated before the judge had answered: start a new scoring"


@pytest.mark.e2e
def test_what_waits_as_a_service_dies_is_scored_by_the_next(idle_server: PrefectStack, tmp_path: Path) -> None:
    with ModelServer() as judge:
        place = Place(tmp_path, judge, f"{SERVICE}scorings_at_once = 1\n")
        place.write("first", "second")
        place.answer(latency=SLOW_SECONDS)
        service = start(idle_server, place)
        service.ask("first")
        wait_until(judge.requests, "the judge to be asked about the first")
        waits = service.ask("second").json()["score_id"]
        service.kill()
        place.answer()
        service = start(idle_server, place)
        done = service.wait_for("second", "completed", "failed")
        assert (done["status"], done["score_id"]) == ("completed", waits)
        service.stop()


@pytest.mark.e2e
def test_twenty_are_asked_at_once_by_one_process_and_each_can_be_ended(
    idle_server: PrefectStack, tmp_path: Path
) -> None:
    with ModelServer() as judge:
        place = Place(tmp_path, judge)
        place.configuration.write_text(
            place.configuration.read_text().replace("drain_seconds = 600", "drain_seconds = 0")
        )
        place.write(*NAMES)
        place.answer(latency=SLOW_SECONDS)
        service = start(idle_server, place)
        family = psutil.Process(service.process.popen.pid).children(recursive=True)
        service.http.post("/api/v1/scoring/batch", json={"session_ids": NAMES}).raise_for_status()
        wait_until(lambda: len(judge.requests()) == len(NAMES), "the judge to be asked about all")
        assert psutil.Process(service.process.popen.pid).children(recursive=True) == family  # none was started

        by_api, in_prefect = NAMES[:2]
        runs = {name: _run_of(idle_server, service, name) for name in (by_api, in_prefect)}
        service.http.post(f"/api/v1/scoring/sessions/{by_api}/cancel").raise_for_status()
        idle_server.set_state(runs[in_prefect], "CANCELLING", "Cancelling")
        assert service.wait_for(by_api, "failed")["error_message"] == WHY_CANCELLED
        service.wait_for(in_prefect, "failed")
        for run in runs.values():
            idle_server.wait_for(run, "Cancelled")
        others = [service.score(name).json()["status"] for name in NAMES[2:]]
        assert others == ["in_progress"] * len(others)

        _terminated_before_a_page_and_half_a_request(service)
        assert have_ended(family)
        for name in NAMES[2:]:
            (row,) = place.scores(name)
            assert (row["status"], row["error_message"]) == ("failed", WHY_ENDED)


def _terminated_before_a_page_and_half_a_request(service: Service) -> None:
    """One SIGTERM ends it, though a scoring would take for ever, a page listens, and a request does not come whole."""
    port = httpx.URL(service.url).port or 0
    with connect(service.socket_url, **LONG) as page, socket.create_connection(("127.0.0.1", port)) as half:
        half.sendall(b"POST /api/v1/scoring/batch HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 9\r\n\r\n[")
        page.send(json.dumps({"type": "subscribe", "channel": f"session:{NAMES[2]}"}))
        told = (json.loads(page.recv(PATIENCE_SECONDS)) for _ in count())
        next(event for event in told if event["type"] == "subscribed")
        service.process.popen.terminate()
        failed = next(event for event in told if event["type"] == "scoring.failed")  # before the socket closes
        service.process.popen.wait(PATIENCE_SECONDS)
    assert failed["error_message"] == WHY_ENDED
    assert "Traceback" not in service.process.log.read_text()
    assert Limits().drain_seconds + END_SECONDS <= 16  # of the 20 seconds that units leave a service


def _run_of(stack: PrefectStack, service: Service, session: str) -> str:
    """The flow run of a session's scoring, once it is under way."""
    score_id = service.wait_for(session, "in_progress")["score_id"]
    running = stack.post("/flow_runs/filter", {"flow_runs": {"state": {"type": {"any_": ["RUNNING"]}}}})
    (run,) = [run["id"] for run in running if run["parameters"]["score_id"] == score_id]
    return str(run)


@pytest.fixture
def place(tmp_path: Path, model_server: ModelServer) -> Place:
    place = Place(tmp_path, model_server)
    place.write("first", "second")
    return place


@pytest.fixture(autouse=True)
def nobody_serves_prefect() -> Iterator[None]:
    with temporary_settings({PREFECT_API_URL: "http://127.0.0.1:9/api", PREFECT_CLIENT_MAX_RETRIES: 0}):
        yield


def ask(place: Place, *requests: tuple[str, str, Any]) -> list[httpx.Response]:
    """What the application answers to requests, one after another, without a server around it."""
    settings = ScoringSettings(
        lake=place.lake, judge=JUDGE, sources=(str(place.sessions),), configuration_file=str(place.configuration)
    )
    transport = httpx.ASGITransport(create_app(settings), raise_app_exceptions=False)

    async def send() -> list[httpx.Response]:
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return [await client.request(method, path, json=body) for method, path, body in requests]

    return asyncio.run(send())


def test_a_scoring_that_cannot_be_submitted_has_failed_and_can_be_asked_for_again(place: Place) -> None:
    score = "/api/v1/scoring/sessions/first/score"
    asked, told, existing, again = ask(
        place,
        ("POST", score, None),
        ("GET", score, None),
        ("POST", score, None),
        ("POST", score, {"force_rescore": True}),
    )
    assert (asked.status_code, again.status_code) == (500, 500)
    assert "Prefect did not let the service submit a scoring" in asked.json()["detail"]
    assert (told.status_code, told.json()["status"]) == (200, "failed")
    assert told.json()["error_message"] == asked.json()["detail"]
    assert (existing.status_code, existing.json()["score_id"]) == (200, told.json()["score_id"])
    assert [row["status"] for row in place.scores("first")] == ["failed", "failed"]


def test_a_batch_that_cannot_be_submitted_has_failed_whole(place: Place) -> None:
    (answer,) = ask(place, ("POST", "/api/v1/scoring/batch", {"session_ids": ["first", "second"]}))
    assert answer.status_code == 500
    assert {row["status"] for session in ("first", "second") for row in place.scores(session)} == {"failed"}


def test_a_broken_table_is_a_reason_and_nothing_of_the_inside(place: Place) -> None:
    (answer,) = ask(place, ("GET", "/api/v1/sessions/first", None))
    assert answer.status_code == 200
    log = next((Path(place.lake.uri) / "samples" / "_delta_log").glob("*.json"))
    log.write_text("{")
    (answer,) = ask(place, ("GET", "/api/v1/sessions/first", None))
    assert answer.status_code == 500
    assert "samples" in answer.json()["detail"]
    assert "Traceback" not in answer.text
