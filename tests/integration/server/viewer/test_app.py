"""The viewer alone: its pages under the strict policy, and for whom it answers."""

import re

import httpx


def test_every_address_of_the_pages_is_the_page_under_the_policy(address: str) -> None:
    for path in ("/runs", "/runs/x", "/runs/x/items", "/runs/x/items/y", "/compare", "/sql"):
        page = httpx.get(address + path, timeout=60)
        assert page.status_code == 200
        assert "script-src 'self'" in page.headers["content-security-policy"]
        assert 'data-only="viewer"' in page.text
        assert not re.search(r"<script(?![^>]*src=)", page.text)


def test_the_first_page_is_the_runs(address: str) -> None:
    assert httpx.get(address, timeout=60).headers["location"] == "/runs"


def test_it_has_nothing_that_writes(address: str) -> None:
    paths = httpx.get(f"{address}/api/v1/openapi.json", timeout=60).json()["paths"]

    asking = {name for name, path in paths.items() if path.keys() != {"get"}}
    assert asking == {"/api/v1/sql", "/api/v1/sql/file"}  # in SQL, of which only what reads is run


def test_with_a_token_nothing_is_read_without_it(locked_address: str) -> None:
    runs = f"{locked_address}/api/v1/runs"

    assert httpx.get(runs, timeout=60).status_code == 401
    assert httpx.get(runs, headers={"authorization": "Bearer right"}).status_code == 200
