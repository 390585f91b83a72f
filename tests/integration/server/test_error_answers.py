"""Errors are answered as JSON with a sentence, and nothing of the inside."""

import asyncio

import httpx
import pytest
from fastapi import FastAPI

from evalake.core.errors import LakeError
from evalake.server.auth import add_error_answers
from evalake.server.settings import NotFoundError


def ask(path: str, **parameters: str) -> httpx.Response:
    """What an application answers whose routes fail in a way each."""
    app = FastAPI()
    add_error_answers(app)
    errors = {"absent": NotFoundError("no such thing"), "lake": LakeError("no table"), "bug": ValueError("<inside>")}

    @app.get("/{name}")
    def fail(name: str, number: int = 0) -> None:
        raise errors[name]

    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.get(path, params=parameters)

    return asyncio.run(send())


@pytest.mark.parametrize(
    ("path", "status", "told"),
    [
        ("/absent", 404, "no such thing"),
        ("/lake", 500, "no table"),
        ("/bug", 500, "unexpected ValueError: the service's log says more"),
    ],
)
def test_each_has_its_status_and_a_sentence(path: str, status: int, told: str) -> None:
    answer = ask(path)
    assert (answer.status_code, answer.json()) == (status, {"detail": told})


def test_what_is_malformed_is_told_without_what_was_sent() -> None:
    answer = ask("/lake", number="secret")
    assert answer.status_code == 422
    assert answer.json()["detail"][0]["loc"] == ["query", "number"]
    assert "secret" not in answer.text
