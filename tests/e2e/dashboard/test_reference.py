"""The API's own page: it asks no other host (a fixture looks), and the API can be tried on it."""

import pytest
from playwright.sync_api import expect

from tests.e2e.dashboard.conftest import Open

pytestmark = pytest.mark.e2e


def test_the_api_can_be_tried_on_its_page(visit: Open, address: str) -> None:
    page = visit().page
    page.goto(f"{address}/reference")
    status = page.locator("#operations-reading-read_status_api_v1_status_get")
    status.get_by_role("button").first.click()
    status.get_by_role("button", name="Try it out").click()
    status.get_by_role("button", name="Execute").click()
    expect(status.locator(".live-responses-table .response-col_status").last).to_contain_text("200")
    expect(status.locator(".live-responses-table")).to_contain_text("criteria_hash")
