"""Score Session, as somebody sees it who waits: progress, the end, failure and a second try, without reloading."""

import re

import httpx
import pytest
from playwright.sync_api import expect

from tests.e2e.dashboard.browsing import session_path
from tests.e2e.dashboard.conftest import Open
from tests.e2e.dashboard.judge import NO_TOTAL, Judge
from tests.e2e.dashboard.world import OLD_CRITERIA, World
from tests.e2e.processes import wait_until

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
    world.land(row, status="failed", completed_at=row["asked_at"], **why)
    expect(page.get_by_role("alert")).to_contain_text("its process died")


def test_a_scoring_is_cancelled_and_its_process_ended(visit: Open, judge: Judge, address: str) -> None:
    page = visit(session_path("live-cancel")).page
    with judge.held_back():
        page.get_by_role("button", name="Score session").click()
        expect(page.locator(".progress")).to_contain_text("Analysing the methodology", timeout=A_SCORING)
        page.get_by_role("button", name="Cancel the scoring").click()
        expect(page.get_by_role("alert")).to_contain_text("it was cancelled by api-client")
        expect(page.get_by_role("progressbar")).to_have_count(0)
        expect(page.get_by_role("button", name="Try again")).to_be_focused()
        score = httpx.get(f"{address}/api/v1/scoring/sessions/live-cancel/score", timeout=60).json()
        prefect = httpx.get(f"{address}/api/v1/status", timeout=60).json()["prefect_url"]

        def ended() -> bool:
            run = httpx.get(f"{prefect}/api/flow_runs/{score['flow_run_id']}", timeout=60).json()
            return bool(run["state_type"] == "CANCELLED")

        wait_until(ended, "the end of the flow run")
    assert httpx.get(f"{address}/api/v1/scoring/sessions/live-cancel/score", timeout=60).json()["status"] == "failed"


def test_the_price_of_many_scorings_is_told_first(visit: Open, world: World) -> None:
    seen = visit("/")
    page = seen.page
    button = page.get_by_role("button", name="Rescore obsolete ones")
    button.click()
    dialog = page.get_by_role("dialog", name="Rescore all under obsolete criteria?")
    price = re.compile(r"1 session: about 2 calls of hosted_vllm/judge, about [\d.]+ to [\d.]+ US dollars")
    expect(dialog).to_contain_text(price)
    dialog.get_by_role("button", name="Cancel").click()
    expect(seen.row("outdated")).to_contain_text("outdated criteria")
    button.click()
    dialog.get_by_role("button", name="Score 1 session").click()
    expect(page.locator(".message.info")).to_contain_text("1 scoring asked for.")
    expect(seen.row("outdated").locator(".badge")).to_contain_text("68", timeout=A_SCORING)
    button.click()
    expect(page.locator(".message.info")).to_contain_text("No score was made under obsolete criteria.")
    world.score("outdated", 61, replicate=2, criteria_hash=OLD_CRITERIA)  # as the other tests know it


def test_what_the_service_refuses_is_a_message(visit: Open, address: str) -> None:
    page = visit(session_path("never-scored")).page
    page.route("**/score", lambda route: route.fulfill(status=503, json={"detail": "the service is shutting down"}))
    page.get_by_role("button", name="Score session").click()
    expect(page.get_by_role("alert")).to_contain_text("the service is shutting down")
    page.unroute("**/score")
    page.route("**/score", lambda route: route.abort())
    page.get_by_role("alert").get_by_role("button", name="Try again").click()
    expect(page.get_by_role("alert")).to_contain_text("The server does not answer")
    asked = httpx.get(f"{address}/api/v1/scoring/sessions/never-scored/score", timeout=60)
    assert asked.status_code == 404  # nothing was begun
