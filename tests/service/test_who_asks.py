"""Who may ask: trusted proxies, the token, loopback; and what everybody else is told."""

import base64
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import HTTPConnection

from contracts.configuration import Configuration, read_configuration
from contracts.configuration import Service as Trust
from service.auth import who
from service.errors import NotAllowedError
from service.settings import Settings
from storage.lake import Lake
from tests.e2e.processes import ROOT, PrefectStack
from tests.servers.model_server import ModelServer
from tests.service.services import Place, Service, environment, start

TOKEN = "a token with ünïcode"
PROXY = "10.1.2.3"


@pytest.fixture(scope="module")
def guarded(
    idle: PrefectStack, tmp_path_factory: pytest.TempPathFactory, judge_server: ModelServer
) -> Iterator[Service]:
    """A service that has a token, and trusts the tests' own address as a proxy."""
    place = Place(tmp_path_factory.mktemp("guarded"), judge_server, 'trusted_proxies = ["127.0.0.1"]\n')
    place.write("a", "b", "c", "d")
    environment(idle, EVALAKE_API_TOKEN="secret")
    try:
        service = start(idle, place)
    finally:
        del idle.environment["EVALAKE_API_TOKEN"]
    yield service
    service.stop()


@pytest.mark.parametrize(
    ("session", "headers", "user"),
    [
        ("a", {"X-Forwarded-User": "alice", "X-Forwarded-Email": "a@x"}, "alice"),
        ("b", {"X-Forwarded-User": "", "X-Forwarded-Email": "bob@x"}, "bob@x"),
        ("c", {"Authorization": "Bearer secret"}, "api-client"),
    ],
)
def test_a_score_says_who_asked_for_it(guarded: Service, session: str, headers: dict[str, str], user: str) -> None:
    asked = guarded.ask(session, headers=headers)
    assert asked.status_code == 202
    assert asked.json()["score_triggered_by"] == user


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic secret"}])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/v1/status"),
        ("GET", "/api/v1/sessions"),
        ("GET", "/api/v1/sessions/d"),
        ("GET", "/api/v1/scoring/sessions/d/score"),
        ("POST", "/api/v1/scoring/sessions/d/score"),
        ("GET", "/api/v1/scoring/sessions/d/history"),
        ("POST", "/api/v1/scoring/batch"),
        ("GET", "/api/v1/scoring/statistics"),
        ("PUT", "/api/v1/scoring/sessions/d/human-rating"),
        ("GET", "/api/v1/runs"),
        ("GET", "/api/v1/metrics"),
    ],
)
def test_nobody_else_gets_anything(guarded: Service, method: str, path: str, headers: dict[str, str]) -> None:
    answer = guarded.http.request(
        method, path, headers=headers, json={"session_ids": ["d"]} if "batch" in path else None
    )
    assert answer.status_code == 401
    assert answer.json()["detail"].startswith("not allowed")


@pytest.mark.parametrize(
    ("headers", "peer", "user"),
    [
        ({"x-forwarded-user": "alice"}, PROXY, "alice"),
        ({"x-forwarded-user": " alice "}, PROXY, "alice"),
        ({"x-forwarded-user": "  ", "x-forwarded-email": "bob@x"}, PROXY, "bob@x"),
        ({"x-forwarded-user": "alice"}, f"::ffff:{PROXY}", "alice"),
        ({"x-forwarded-user": "alice"}, "10.9.9.9", None),
        ({"x-forwarded-email": "alice@x"}, PROXY, "alice@x"),
        ({"x-forwarded-user": "a\x00l\x1bice" + "e" * 1000}, PROXY, ("alice" + "e" * 1000)[:320]),
        ({"authorization": f"bearer {TOKEN}"}, "10.9.9.9", "api-client"),
        ({"authorization": f"Bearer {TOKEN}x"}, "10.9.9.9", None),
        ({"authorization": "Bearer "}, PROXY, None),
        ({"sec-websocket-protocol": "evalake, bearer." + base64.urlsafe_b64encode(TOKEN.encode()).decode().rstrip("=")},
         "10.9.9.9", "api-client"),
        ({"sec-websocket-protocol": "evalake, bearer.%%%"}, "10.9.9.9", None),
    ],
)  # fmt: skip
def test_whom_the_service_believes(headers: Mapping[str, str], peer: str, user: str | None) -> None:
    trust = Trust(trusted_proxies=(ip_network(f"{PROXY}/32"),))
    settings = _settings(Configuration(service=trust), TOKEN)
    connection = _connection("GET", {"host": "scores.example", **headers}, peer)
    if user is None:
        with pytest.raises(NotAllowedError):
            who(connection, settings)
    else:
        assert who(connection, settings) == user


@pytest.mark.parametrize(
    ("method", "headers", "allowed"),
    [
        ("POST", {"host": "127.0.0.1:8600"}, True),
        ("POST", {"host": "localhost:8600", "origin": "http://localhost:8600"}, True),
        ("POST", {"host": "[::1]:8600"}, True),
        ("POST", {"host": "127.0.0.1:8600", "origin": "https://elsewhere.example"}, False),
        ("POST", {"host": "127.0.0.1:8600", "origin": "null"}, False),
        ("POST", {"host": "127.0.0.1:8600", "origin": "http://127.0.0.1:9999"}, False),
        ("GET", {"host": "rebound.example:8600"}, False),
        ("GET", {"host": "[::1"}, False),
        ("GET", {}, False),
    ],
)
def test_pages_of_other_sites_are_refused_where_everybody_may_ask(
    method: str, headers: Mapping[str, str], allowed: bool
) -> None:
    settings = _settings(Configuration(), None)
    connection = _connection(method, headers, "127.0.0.1")
    if allowed:
        assert who(connection, settings) == "api-client"
    else:
        with pytest.raises(NotAllowedError):
            who(connection, settings)


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_an_address_that_others_reach_needs_a_way_to_tell_who_asks(host: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "cli", "serve", "--host", host, "--port", "0", "--lake", str(tmp_path / "lake")]
    environment = {name: value for name, value in os.environ.items() if name != "EVALAKE_API_TOKEN"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "EVALAKE_API_TOKEN" in done.stderr
    assert "trusted_proxies" in done.stderr
    assert not (tmp_path / "lake").exists()


def test_the_configuration_names_proxies_by_address_or_network(tmp_path: Path) -> None:
    file = tmp_path / "evalake.toml"
    file.write_text('[service]\ntrusted_proxies = ["10.0.0.0/8", "::1"]\n')
    proxies = read_configuration(file).service.trusted_proxies
    assert proxies == (ip_network("10.0.0.0/8"), ip_network("::1/128"))


def _settings(configuration: Configuration, token: str | None) -> Settings:
    settings = Settings(Lake("nowhere"), token=token)
    settings.__dict__["configuration"] = configuration  # as read from a file
    return settings


def _connection(method: str, headers: Mapping[str, str], peer: str) -> HTTPConnection:
    raw = [(name.encode(), value.encode("utf-8")) for name, value in headers.items()]
    scope: dict[str, Any] = {"type": "http", "method": method, "headers": raw, "client": (peer, 5000)}
    return HTTPConnection(scope)
