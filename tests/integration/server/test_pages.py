"""The dashboard's pages are where nothing else is."""

import re

import pytest

from evalake.core.configuration import VIEWER_URL
from evalake.reports.page import item_address
from evalake.server.pages import addresses
from tests.integration.server.services import Service


def test_the_dashboard_is_where_nothing_else_is(service: Service) -> None:
    pages = [service.http.get(path) for path in ("/", "/trends", "/runs", "/sessions/any/id%20at%20all")]
    assert {(page.status_code, page.headers["content-type"]) for page in pages} == {(200, "text/html; charset=utf-8")}
    assert len({page.text for page in pages}) == 1
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
