"""Strangers: refused before they are read, and told nothing."""

import asyncio
import json
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute, APIWebSocketRoute
from starlette.routing import BaseRoute, Route
from websockets.exceptions import InvalidStatus

from evalake.server.auth import LARGEST_BODY
from evalake.server.pages import addresses
from evalake.server.scoring.scorings import ScoringSettings
from evalake.server.server import create_app
from evalake.server.viewer.routes import create_viewer
from evalake.storage.lake import Lake
from tests.integration.server.conftest import TOKEN
from tests.integration.server.services import Service

# Who asks, and how much is sent, is decided from the headers: nobody else's bytes are read, kept or waited for.

BATCH = "/api/v1/scoring/batch"
ALLOWED = {"authorization": f"Bearer {TOKEN}"}
HUGE = 90_000_000
GROWTH = 40_000_000  # bytes that a process may grow by for reasons of its own


@pytest.fixture(scope="module", params=["service", "viewer"])
def app(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> FastAPI:
    """An application that has a token."""
    lake = Lake(str(tmp_path_factory.mktemp("access") / "lake"))
    settings = ScoringSettings(lake=lake, token=TOKEN)
    return create_app(settings) if request.param == "service" else create_viewer(settings)


def test_every_path_of_the_api_refuses_who_has_no_token(app: FastAPI) -> None:
    asked = [(method, path) for path, methods in _paths(app) if path.startswith("/api/") for method in methods]
    assert len(asked) > 5

    async def ask() -> dict[tuple[str, str], int]:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return {(method, path): (await client.request(method, path)).status_code for method, path in asked}

    assert set(asyncio.run(ask()).values()) == {401}


def test_what_is_open_without_a_token_are_the_files_of_the_dashboard(app: FastAPI) -> None:
    pages = {path for path, _ in _paths(app) if not path.startswith("/api/")}
    viewer = {re.sub(r"\{[^}]+\}", "x", path) for path in addresses()["viewer"].values()}
    assert pages - viewer <= {"/", "/sessions", "/sessions/x", "/trends", "/reference", "/reference/x"}


def _paths(app: FastAPI) -> list[tuple[str, list[str]]]:
    """Every path that the application answers with code, parameters filled in, and its methods."""
    routes = [route for route in _flat(app.routes) if isinstance(route, Route | APIRoute | APIWebSocketRoute)]
    return [
        (re.sub(r"\{[^}]+\}", "x", route.path), sorted(getattr(route, "methods", None) or {"GET"})) for route in routes
    ]


def _flat(routes: list[BaseRoute]) -> Iterator[BaseRoute]:
    for route in routes:
        inner = getattr(route, "original_router", None)  # FastAPI's included routers
        yield from _flat(inner.routes) if inner is not None else (route,)


def test_a_huge_body_of_a_stranger_is_answered_before_it_comes_and_never_kept(guarded: Service) -> None:
    process = psutil.Process(guarded.process.popen.pid)
    before = process.memory_info().rss
    with _sent(guarded, "POST", BATCH, {"content-length": str(HUGE)}) as stranger:
        assert _status(stranger) == 401
        part = b"[" * 1_000_000
        try:
            for _ in range(HUGE // len(part)):
                stranger.sendall(part)
                assert guarded.http.get("/api/v1/status", headers=ALLOWED).status_code == 200
        except OSError:  # the service may close at any moment
            pass
        assert process.memory_info().rss - before < GROWTH


def test_who_announces_a_body_and_sends_none_is_let_go(guarded: Service) -> None:
    with _sent(guarded, "POST", BATCH, {"content-length": "1000"}) as stranger:
        assert _status(stranger) == 401
        while stranger.recv(65_536):  # ends with the connection
            pass


def test_a_body_that_is_too_large_is_refused_from_its_header(guarded: Service) -> None:
    with _sent(guarded, "POST", BATCH, {**ALLOWED, "content-length": str(LARGEST_BODY + 1)}) as client:
        assert _status(client) == 413


def test_a_body_that_does_not_say_how_large_it_is_is_counted(guarded: Service) -> None:
    with _sent(guarded, "POST", BATCH, {**ALLOWED, "transfer-encoding": "chunked"}) as client:
        part = b" " * 65_536
        for _ in range(LARGEST_BODY // len(part) + 1):
            client.sendall(b"%x\r\n%b\r\n" % (len(part), part))
        assert _status(client) == 413


def test_a_body_as_large_as_allowed_is_read(guarded: Service) -> None:
    body = json.dumps({"session_ids": ["nobody"]}).ljust(LARGEST_BODY)
    answer = guarded.http.post(BATCH, content=body, headers={**ALLOWED, "content-type": "application/json"})
    assert answer.status_code == 202


@pytest.mark.parametrize("body", [b"{", b"\xff", b"[" * 1_000_000, b""])
def test_malformed_json_of_a_stranger_is_not_looked_at(guarded: Service, body: bytes) -> None:
    kind = {"content-type": "application/json"}
    refused = guarded.http.post(BATCH, content=body, headers=kind)
    assert refused.status_code == 401
    assert ("connection" in refused.headers) == bool(body)  # a client sends nothing after a body that was not read
    assert guarded.http.post(BATCH, content=body, headers={**kind, **ALLOWED}).status_code == 422


@pytest.mark.parametrize("protocols", [None, ["evalake", "bearer.d3Jvbmc"]])
def test_a_stranger_is_refused_before_a_websocket_opens(guarded: Service, protocols: list[str] | None) -> None:
    async def attempt() -> int:
        with pytest.raises(InvalidStatus) as refused:
            async with guarded.listen(subprotocols=protocols):
                pass
        return refused.value.response.status_code

    assert asyncio.run(attempt()) == 401


def test_what_strangers_do_leaves_no_traceback_in_the_log(guarded: Service) -> None:
    with _sent(guarded, "POST", BATCH, {**ALLOWED, "content-length": "1000"}) as client:
        client.sendall(b"{")
    assert guarded.http.get("/api/v1/status", headers=ALLOWED).status_code == 200
    assert "Traceback" not in Path(guarded.process.log).read_text()


@contextmanager
def _sent(service: Service, method: str, path: str, headers: dict[str, str]) -> Iterator[socket.socket]:
    """A connection on which the headers of a request have been sent, and nothing of its body."""
    port = httpx.URL(service.url).port
    with socket.create_connection(("127.0.0.1", port or 0), timeout=600) as connection:
        lines = [f"{method} {path} HTTP/1.1", "host: 127.0.0.1", *(f"{name}: {headers[name]}" for name in headers)]
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        yield connection


def _status(connection: socket.socket) -> int:
    return int(connection.recv(65_536).split(b" ")[1])


# Headers of every answer.


@pytest.mark.parametrize("path", ["/api/v1/status", "/api/v1/sessions/nobody", "/nothing/here", "/api/v1/openapi.json"])
def test_every_answer_forbids_what_a_page_does_not_need(guarded: Service, path: str) -> None:
    headers = guarded.http.get(path, headers=ALLOWED).headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert "server" not in headers
