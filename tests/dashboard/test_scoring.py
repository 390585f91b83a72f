"""Score Session, as somebody sees it who waits: progress, the end, failure and a second try, without reloading."""

import httpx
import pytest
from playwright.sync_api import expect

from tests.dashboard.browsing import session_path
from tests.dashboard.conftest import Open
from tests.dashboard.judge import NO_TOTAL, Judge
from tests.dashboard.world import World

pytestmark = pytest.mark.e2e

A_SCORING = 120_000  # milliseconds in which a flow run starts and ends


def test_scores_a_session_live(visit: Open, judge: Judge) -> None:
    page = visit(session_path("live-good")).page
    with judge.held_back():
        page.get_by_role("button", name="Score session").click()
        expect(page.get_by_role("progressbar")).to_be_visible()
        expect(page.locator(".progress")).to_contain_text("Analysing the methodology", timeout=A_SCORING)
        expect(page.locator("#announcer")).to_have_text("Analysing the methodology")
        expect(page.get_by_role("button", name="Scoring …")).to_be_focused()
    expect(page.locator(".badge.large")).to_contain_text("68", timeout=A_SCORING)
    expect(page.locator("#announcer")).to_have_text("Scoring is complete: 68 of 100")
    expect(page.get_by_text("pg-stat-activity").first).to_be_visible()
    expect(page.get_by_text("17 / 25")).to_have_count(2)
    expect(page.get_by_role("progressbar")).to_have_count(0)
    expect(page.get_by_role("button", name="Score again")).to_be_visible()


def test_a_failed_scoring_says_why_and_can_be_tried_again(visit: Open, judge: Judge) -> None:
    page = visit(session_path("live-bad")).page
    with judge.saying(NO_TOTAL):
        page.get_by_role("button", name="Score session").click()
        expect(page.get_by_role("alert")).to_contain_text("ended in no total", timeout=A_SCORING)
    expect(page.locator("#announcer")).to_contain_text("Scoring has failed")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator(".badge.large")).to_contain_text("68", timeout=A_SCORING)
    expect(page.locator(".history li")).to_have_count(2)


def test_scoring_again_asks_first(visit: Open) -> None:
    page = visit(session_path("live-again")).page
    page.get_by_role("button", name="Score again").click()
    dialog = page.get_by_role("dialog", name="Score this session again?")
    expect(dialog).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("button", name="Score again")).to_be_focused()
    expect(page.locator(".badge.large")).to_contain_text("20")
    page.get_by_role("button", name="Score again").click()
    dialog.get_by_role("button", name="Score again").click()
    expect(page.get_by_role("progressbar")).to_be_visible()
    expect(page.locator(".badge.large")).to_contain_text("68", timeout=A_SCORING)
    expect(page.locator(".history li")).to_have_count(2)


def test_a_scoring_that_somebody_else_began_is_shown(visit: Open, world: World) -> None:
    page = visit(session_path("live-conflict")).page
    expect(page.get_by_role("button", name="Score session")).to_be_visible()
    row = world.land(world.pending("live-conflict"))
    expect(page.get_by_role("button", name="Scoring …")).to_be_visible()
    expect(page.locator(".progress")).to_contain_text("Waiting to begin")
    row = world.land(row, status="in_progress")
    expect(page.locator(".progress")).to_contain_text("Analysing the methodology")
    why = {"error_kind": "lost", "error_message": "its process died"}
    world.land(row, status="failed", completed_at=row["started_at"], **why)
    expect(page.get_by_role("alert")).to_contain_text("its process died")


def test_what_the_service_refuses_is_a_message(visit: Open, address: str) -> None:
    page = visit(session_path("never-scored")).page
    page.route("**/score", lambda route: route.fulfill(status=503, json={"detail": "the service is shutting down"}))
    page.get_by_role("button", name="Score session").click()
    expect(page.get_by_role("alert")).to_contain_text("the service is shutting down")
    page.unroute("**/score")
    page.route("**/score", lambda route: route.abort())
    page.get_by_role("alert").get_by_role("button", name="Try again").click()
    expect(page.get_by_role("alert")).to_contain_text("The server does not answer")
    asked = httpx.get(f"{address}/api/v1/scoring/sessions/never-scored/score")
    assert asked.status_code == 404  # nothing was begun
