"""By which names the service may be addressed, and whose pages may ask it."""

from collections.abc import Mapping

import pytest
from starlette.requests import HTTPConnection

from evalake.server.auth import Hosts
from evalake.server.settings import NotAllowedError, WrongHostError
from tests.integration.server.conftest import TOKEN
from tests.integration.server.services import Service


@pytest.mark.parametrize(
    ("bound", "host", "ours"),
    [
        ("127.0.0.1", "127.0.0.1:8600", True),
        ("127.0.0.1", "LocalHost:8600", True),
        ("127.0.0.1", "[::1]:8600", True),
        ("127.0.0.1", "scores.example", True),
        ("127.0.0.1", "scores.example.evil.example", False),
        ("127.0.0.1", "rebound.example:8600", False),
        ("127.0.0.1", "10.0.0.7:8600", False),
        ("127.0.0.1", "[::1", False),
        ("127.0.0.1", "rebound.example@127.0.0.1:8600", False),
        ("127.0.0.1", "", False),
        ("10.0.0.7", "10.0.0.7:8600", True),
        ("10.0.0.7", "10.0.0.8:8600", False),
        ("0.0.0.0", "10.0.0.8:8600", True),
        ("0.0.0.0", "rebound.example", False),
        ("::", "[fe80::1]:8600", True),
    ],
)
def test_the_names_of_the_service(bound: str, host: str, ours: bool) -> None:
    hosts = Hosts(bound, ("scores.example",))
    if ours:
        hosts.require_ours(_connection("GET", {"host": host}))
    else:
        with pytest.raises(WrongHostError, match="allowed_hosts"):
            hosts.require_ours(_connection("GET", {"host": host}))


def test_a_request_without_a_host_or_with_two_is_for_somebody_else() -> None:
    hosts = Hosts("127.0.0.1", ())
    twice = _connection("GET", {"host": "localhost"})
    twice.scope["headers"].append((b"host", b"evil.example"))
    for connection in (_connection("GET", {}), twice):
        with pytest.raises(WrongHostError):
            hosts.require_ours(connection)


@pytest.mark.parametrize(
    ("method", "headers", "allowed"),
    [
        ("POST", {"host": "127.0.0.1:8600"}, True),
        ("POST", {"host": "localhost:8600", "origin": "http://localhost:8600"}, True),
        ("POST", {"host": "127.0.0.1:8600", "origin": "https://scores.example"}, True),
        ("POST", {"host": "127.0.0.1:8600", "origin": "https://elsewhere.example"}, False),
        (
            "POST",
            {"host": "127.0.0.1:8600", "origin": "https://elsewhere.example", "x-forwarded-host": "elsewhere.example"},
            False,
        ),
        ("POST", {"host": "127.0.0.1:8600", "origin": "null"}, False),
        ("POST", {"host": "127.0.0.1:8600", "origin": "http://[::1"}, False),
        ("POST", {"host": "127.0.0.1:8600", "origin": "http://127.0.0.1:9999"}, False),
        ("GET", {"host": "127.0.0.1:8600", "origin": "https://elsewhere.example"}, True),  # it cannot read the answer
    ],
)
def test_pages_of_other_sites_may_start_nothing(method: str, headers: Mapping[str, str], allowed: bool) -> None:
    hosts = Hosts("127.0.0.1", ("scores.example",))
    if allowed:
        hosts.require_own_page(_connection(method, headers))
    else:
        with pytest.raises(NotAllowedError):
            hosts.require_own_page(_connection(method, headers))


def test_a_request_of_two_pages_is_of_another_site() -> None:
    own, other = ((b"origin", f"http://{host}:8600".encode()) for host in ("127.0.0.1", "elsewhere.example"))
    twice = _connection("POST", {"host": "127.0.0.1:8600"})
    twice.scope["headers"].extend((own, other))
    with pytest.raises(NotAllowedError):
        Hosts("127.0.0.1", ()).require_own_page(twice)


@pytest.mark.parametrize("path", ["/api/v1/status", "/", "/runs"])
def test_a_name_that_another_site_points_here_gets_nothing_whatever_user_it_claims(guarded: Service, path: str) -> None:
    rebound = {"Host": "rebound.example:8600", "X-Forwarded-User": "root", "Authorization": f"Bearer {TOKEN}"}
    answer = guarded.http.get(path, headers=rebound)
    assert answer.status_code == 421
    assert "allowed_hosts" in answer.json()["detail"]


def _connection(method: str, headers: Mapping[str, str]) -> HTTPConnection:
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    return HTTPConnection({"type": "http", "method": method, "headers": raw})
