"""Who may ask: trusted proxies, the token, loopback; and what everybody else is told."""

import base64
from collections.abc import Mapping
from ipaddress import ip_network
from typing import Any

import pytest
from starlette.requests import HTTPConnection

from evalake.core.configuration import Configuration
from evalake.core.configuration import Service as Trust
from evalake.server.auth import who
from evalake.server.settings import NotAllowedError, Settings
from evalake.storage.lake import Lake
from tests.integration.server.services import Service

TOKEN = "a token with ünïcode"
PROXY = "10.1.2.3"


@pytest.mark.parametrize(
    ("session", "headers", "user"),
    [
        ("a", {"X-Forwarded-User": "alice", "X-Forwarded-Email": "a@x"}, "alice"),
        ("b", {"X-Forwarded-User": "bob", "Authorization": "Bearer wrong"}, "bob"),
        ("c", {"Authorization": "Bearer secret"}, "api-client"),
    ],
)
def test_a_score_says_who_asked_for_it(guarded: Service, session: str, headers: dict[str, str], user: str) -> None:
    asked = guarded.ask(session, headers=headers)
    assert asked.status_code == 202
    assert asked.json()["score_triggered_by"] == user


@pytest.mark.parametrize(
    ("headers", "peer", "user"),
    [
        ({"x-forwarded-user": "alice"}, PROXY, "alice"),
        ({"x-forwarded-user": " alice "}, PROXY, "alice"),
        ({"x-forwarded-user": "  ", "x-forwarded-email": "bob@x"}, PROXY, None),
        ({"x-forwarded-user": "alice"}, f"::ffff:{PROXY}", "alice"),
        ({"x-forwarded-user": "alice"}, "10.9.9.9", None),
        ({"x-forwarded-email": "alice@x"}, PROXY, None),
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


def test_only_the_header_that_is_named_is_believed() -> None:
    trust = Trust(trusted_proxies=(ip_network(f"{PROXY}/32"),), user_header="X-Forwarded-Email")
    settings = _settings(Configuration(service=trust), None)
    forged = {"x-forwarded-user": "root", "x-forwarded-email": "alice@x"}
    assert who(_connection("GET", forged, PROXY), settings) == "alice@x"
    with pytest.raises(NotAllowedError):
        who(_connection("GET", {"x-forwarded-user": "root"}, PROXY), settings)


def test_a_name_that_comes_twice_is_nobodys() -> None:
    """A proxy that adds its header to a client's own leaves both."""
    settings = _settings(Configuration(service=Trust(trusted_proxies=(ip_network(f"{PROXY}/32"),))), None)
    connection = _connection("GET", {"x-forwarded-user": "root"}, PROXY)
    connection.scope["headers"].append((b"x-forwarded-user", b"alice"))
    with pytest.raises(NotAllowedError):
        who(connection, settings)


def _settings(configuration: Configuration, token: str | None) -> Settings:
    settings = Settings(lake=Lake("nowhere"), token=token)
    settings.__dict__["configuration"] = configuration  # as read from a file
    return settings


def _connection(method: str, headers: Mapping[str, str], peer: str) -> HTTPConnection:
    raw = [(name.encode(), value.encode("utf-8")) for name, value in headers.items()]
    scope: dict[str, Any] = {"type": "http", "method": method, "headers": raw, "client": (peer, 5000)}
    return HTTPConnection(scope)
