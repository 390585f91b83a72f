"""Without a Prefect server, or with a broken table: a 500 with a reason, and nothing that looks as if it went on."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from prefect.settings import PREFECT_API_URL, PREFECT_CLIENT_MAX_RETRIES, temporary_settings

from service.app import create_app
from service.scoring.settings import ScoringSettings
from tests.servers.model_server import ModelServer
from tests.service.services import JUDGE, Place


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
