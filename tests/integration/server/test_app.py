"""The service: its description, pages, errors, logs and settings."""

import asyncio
import json
import re
import socket
from collections.abc import Iterator
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import schemathesis
from fastapi import FastAPI
from hypothesis import HealthCheck, given, settings
from schemathesis import Case
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from evalake.core.configuration import VIEWER_URL, read_configuration
from evalake.core.errors import LakeError, UsageError
from evalake.reports.page import item_address
from evalake.server.auth import add_error_answers
from evalake.server.listening import require_reachable_by_whom
from evalake.server.pages import addresses
from evalake.server.settings import NotFoundError, Settings
from evalake.storage.lake import Lake
from tests.e2e.processes import PrefectStack, wait_until
from tests.integration.server.services import Place, Service, start
from tests.servers.model_server import ModelServer

# The API against its own description: whatever a client may send, it answers as it says, and never with 500.

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@pytest.fixture(scope="module")
def contract_service(
    idle: PrefectStack, tmp_path_factory: pytest.TempPathFactory, judge_server: ModelServer
) -> Iterator[Service]:
    """A service of its own, which logs in JSON: clients may send a batch of all that was never scored."""
    place = Place(tmp_path_factory.mktemp("described"), judge_server)
    place.write("a", "b", "c")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(idle.environment, "EVALAKE_LOG_FORMAT", "json")
        service = start(idle, place)
    yield service
    service.stop()


def test_answers_are_as_described(contract_service: Service) -> None:
    schema = schemathesis.openapi.from_url(f"{contract_service.url}/api/v1/openapi.json")
    operations = [found.ok() for found in schema.get_all_operations()]  # type: ignore[union-attr]
    assert len(operations) == len(list(schema.get_all_operations())) > 10
    for operation in operations:

        @settings(max_examples=8, derandomize=True, suppress_health_check=list(HealthCheck))
        @given(case=operation.as_strategy())
        def holds(case: Case[Any]) -> None:
            case.call_and_validate(checks=CHECKS, timeout=600)

        holds()


def test_everything_is_described_with_its_errors(contract_service: Service) -> None:
    document = contract_service.http.get("/api/v1/openapi.json").json()
    post = document["paths"]["/api/v1/scoring/sessions/{session_id}/score"]["post"]
    assert post["responses"].keys() == {"200", "202", "400", "401", "404", "409", "422", "500", "503"}
    assert all(
        "example" in answer["content"]["application/json"]
        for code, answer in post["responses"].items()
        if code != "422"
    )


# Errors are answered as JSON with a sentence, and nothing of the inside.


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


# Where a service listens: others may reach it only where it can tell who asks.


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_an_address_that_others_reach_needs_a_way_to_tell_who_asks(host: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"EVALAKE_API_TOKEN.* trusted_proxies"):
        require_reachable_by_whom(Settings(lake=Lake(str(tmp_path / "lake"))), host)
    require_reachable_by_whom(Settings(lake=Lake(str(tmp_path / "lake")), token="secret"), host)


# What the service prints: with EVALAKE_LOG_FORMAT=json, the web server's own lines are JSON, too.

COMPLAINT = "Invalid HTTP request received."


def test_the_web_servers_lines_are_json(contract_service: Service) -> None:
    where = urlsplit(contract_service.url)
    with socket.create_connection((str(where.hostname), where.port or 0)) as connection:
        connection.sendall(b"no request at all\r\n\r\n")

    def complaints() -> list[str]:
        return [line for line in contract_service.process.log.read_text().splitlines() if COMPLAINT in line]

    (line,) = wait_until(complaints, "the complaint about the request")
    told = json.loads(line)
    assert (told["level"], told["message"]) == ("WARNING", COMPLAINT)


# The dashboard's pages are where nothing else is.


def test_the_dashboard_is_where_nothing_else_is(service: Service) -> None:
    assert "without a token: every user of this machine can use it" in service.process.log.read_text()
    pages = [service.http.get(path) for path in ("/", "/trends", "/runs", "/sessions/any/id%20at%20all")]
    assert {(page.status_code, page.headers["content-type"]) for page in pages} == {(200, "text/html; charset=utf-8")}
    assert len({page.text for page in pages}) == 1
    assert service.http.get("/sessions?status=failed").headers["location"] == "./?status=failed"
    loaded = re.findall(r'(?:src|href)="(/[^"]+\.(?:js|css|svg))"', pages[0].text)
    assert [service.http.get(path).status_code for path in loaded] == [200] * 3
    for path in ("/nothing", "/..%2f..%2fREADME.md", "/js/..%2f..%2fapp.py", "/api/v1/nothing"):
        assert service.http.get(path).status_code == 404


def test_a_browser_at_an_address_without_a_page_gets_one_that_says_so(service: Service) -> None:
    browser = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    page = service.http.get("/nothing/at/all", headers=browser)
    assert (page.status_code, page.text) == (404, service.http.get("/runs").text)
    wrong = service.http.get("/api/v1/nothing", headers=browser)
    assert (wrong.status_code, wrong.json()) == (404, {"detail": "Not Found"})


def test_reports_link_to_the_page_of_an_item(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VIEWER_URL, "http://viewer")
    page = addresses()["viewer"]["item"].format(run_id="r", item_id="i")
    assert item_address("r", "i") == f"http://viewer{page}"


# Whom a service believes.


def test_the_configuration_names_proxies_by_address_or_network(tmp_path: Path) -> None:
    file = tmp_path / "evalake.toml"
    file.write_text('[service]\ntrusted_proxies = ["10.0.0.0/8", "::1"]\n')
    proxies = read_configuration(file).service.trusted_proxies
    assert proxies == (ip_network("10.0.0.0/8"), ip_network("::1/128"))


def test_a_service_is_open_without_a_token_and_without_proxies(tmp_path: Path) -> None:
    file = tmp_path / "evalake.toml"
    file.write_text("")
    lake = Lake(str(tmp_path / "lake"))
    assert Settings(lake=lake, configuration_file=str(file)).is_open
    assert not Settings(lake=lake, configuration_file=str(file), token="t").is_open
    file.write_text('[service]\ntrusted_proxies = ["::1"]\n')
    assert not Settings(lake=lake, configuration_file=str(file)).is_open
