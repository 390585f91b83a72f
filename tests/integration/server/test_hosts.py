"""Who asks: users, proxies, hosts and other sites."""

import base64
from collections.abc import Mapping
from ipaddress import ip_network

import pytest
from starlette.requests import HTTPConnection

from evalake.core.configuration import Configuration
from evalake.core.configuration import Service as Trust
from evalake.server.auth import Hosts, who
from evalake.server.settings import NotAllowedError, Settings, WrongHostError
from evalake.storage.lake import Lake
from tests.cases import cases_beside
from tests.integration.server.conftest import TOKEN
from tests.integration.server.services import Service

CASES = cases_beside(__file__, "hosts.json")

# By which names the service may be addressed, and whose pages may ask it.


@pytest.mark.parametrize(("bound", "host", "ours"), CASES["names"])
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


@pytest.mark.parametrize(("method", "headers", "allowed"), CASES["pages"])
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


def _connection(method: str, headers: Mapping[str, str], peer: str = "127.0.0.1") -> HTTPConnection:
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    return HTTPConnection({"type": "http", "method": method, "headers": raw, "client": (peer, 5000)})


# Who may ask: trusted proxies, the token, loopback; and what everybody else is told.

OWN = "a token with ünïcode"
PROXY = "10.1.2.3"


def test_a_score_says_who_asked_for_it(guarded: Service) -> None:
    asked = guarded.ask("a", headers={"X-Forwarded-User": "alice", "X-Forwarded-Email": "a@x"})
    assert (asked.status_code, asked.json()["score_triggered_by"]) == (202, "alice")


@pytest.mark.parametrize(
    ("headers", "peer", "user"),
    [
        ({"x-forwarded-user": "alice"}, PROXY, "alice"),
        ({"x-forwarded-user": " alice "}, PROXY, "alice"),
        ({"x-forwarded-user": "bob", "authorization": "Bearer wrong"}, PROXY, "bob"),
        ({"x-forwarded-user": "  ", "x-forwarded-email": "bob@x"}, PROXY, None),
        ({"x-forwarded-user": "alice"}, f"::ffff:{PROXY}", "alice"),
        ({"x-forwarded-user": "alice"}, "10.9.9.9", None),
        ({"x-forwarded-email": "alice@x"}, PROXY, None),
        ({"x-forwarded-user": "a\x00l\x1bice" + "e" * 1000}, PROXY, ("alice" + "e" * 1000)[:320]),
        ({"authorization": f"bearer {OWN}"}, "10.9.9.9", "api-client"),
        ({"authorization": f"Bearer {OWN}x"}, "10.9.9.9", None),
        ({"authorization": "Bearer "}, PROXY, None),
        ({"sec-websocket-protocol": "evalake, bearer." + base64.urlsafe_b64encode(OWN.encode()).decode().rstrip("=")},
         "10.9.9.9", "api-client"),
        ({"sec-websocket-protocol": "evalake, bearer.%%%"}, "10.9.9.9", None),
    ],
)  # fmt: skip
def test_whom_the_service_believes(headers: Mapping[str, str], peer: str, user: str | None) -> None:
    trust = Trust(trusted_proxies=(ip_network(f"{PROXY}/32"),))
    settings = _settings(Configuration(service=trust), OWN)
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
