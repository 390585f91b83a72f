"""The list of sessions: badges, order, filters, pages, and what happens while one looks."""

import re

import pytest
from playwright.sync_api import expect

from tests.e2e.dashboard.conftest import Open
from tests.e2e.dashboard.world import FILLERS, HOSTILE, HOSTILE_ID, SCORED, TOTAL, World

pytestmark = pytest.mark.e2e

COLOURS = {0: "red", 49: "red", 50: "yellow", 74: "yellow", 75: "green", 100: "green"}
STATES = {"never-scored": "Not Scored", "waiting": "Pending", "at-work": "Scoring", "broken": "Failed"}


def test_badges_of_every_range_and_state(visit: Open) -> None:
    seen = visit("/")
    for session_id, total in SCORED.items():
        assert seen.badge(session_id) == str(total)
        expect(seen.row(session_id).locator(".badge")).to_contain_class(COLOURS[total])
    assert {session_id: seen.badge(session_id) for session_id in STATES} == STATES
    expect(seen.row("outdated")).to_contain_text("outdated criteria")
    expect(seen.row("scored-100")).not_to_contain_text("outdated criteria")


def test_sorts_by_score_with_unknown_ones_last(visit: Open) -> None:
    seen = visit("/")
    by_score = seen.page.get_by_role("columnheader", name="Score", exact=True)
    by_score.get_by_role("button").click()
    seen.expect_first("scored-100")
    assert seen.ids()[:3] == ["scored-100", "scored-075", "scored-074"]
    expect(by_score).to_have_attribute("aria-sort", "descending")
    expect(by_score.get_by_role("button")).to_be_focused()
    by_score.get_by_role("button").click()
    seen.expect_first("scored-000")
    expect(by_score).to_have_attribute("aria-sort", "ascending")
    seen.page.get_by_label("Sort by").select_option("Oldest session")
    seen.expect_first("filler-00")


def test_filters_and_keeps_them_in_the_address(visit: Open) -> None:
    seen = visit("/")
    page = seen.page
    page.get_by_label("Scoring", exact=True).select_option("Failed")
    expect(seen.row("broken")).to_be_visible()
    expect(seen.row("scored-100")).to_have_count(0)
    page.get_by_role("button", name="Clear the filters").click()
    expect(page.locator("tbody tr")).to_have_count(25)
    page.get_by_label("Lowest score").fill("49")
    page.get_by_label("Highest score").fill("50")
    page.get_by_label("Highest score").blur()
    seen.expect_ids("scored-050", "scored-049")
    page.reload()
    seen.expect_ids("scored-050", "scored-049")
    expect(page.get_by_label("Highest score")).to_have_value("50")


def test_finds_by_text_criteria_and_day(visit: Open) -> None:
    seen = visit("/")
    page = seen.page
    page.get_by_label("Criteria").select_option("Obsolete")
    seen.expect_ids("outdated")
    page.get_by_role("button", name="Clear the filters").click()
    page.get_by_label("Search").fill("NEVER-sco")
    seen.expect_ids("never-scored")
    page.get_by_label("Search").fill("no such thing at all")
    expect(page.get_by_text("No session matches these filters.")).to_be_visible()
    page.get_by_role("button", name="Clear the filters").click()
    page.get_by_label("Began until").fill("2026-03-01")
    page.get_by_label("Began until").blur()
    expect(page.locator("tbody tr")).to_have_count(16)  # from 08:00 on, one an hour
    assert all(name.startswith("filler") for name in seen.ids())


def test_sorts_by_every_column(visit: Open) -> None:
    page = visit("/").page
    sorted_columns = ("Session", "Score", "Ended as", "Began", "Took", "Tool calls", "Scored")
    for column in sorted_columns:
        head = page.get_by_role("columnheader", name=column, exact=True)
        for _ in range(2):
            head.get_by_role("button").click()
            expect(head).to_have_attribute("aria-sort", re.compile("ending"))
    expect(page.get_by_label("Sort by")).to_have_value("scored_at-asc")
    page.get_by_label("Sort by").select_option("Session, A to Z")
    expect(page.locator("tbody a.id").first).to_have_text("at-work")


def test_more_filters_choose_from_what_there_is(visit: Open) -> None:
    seen = visit("/?search=o")
    page = seen.page
    expect(page.get_by_label("Agent")).to_be_hidden()
    page.get_by_text("More filters").click()
    page.get_by_label("Ended as").select_option("Timed out")
    seen.expect_ids("broken")
    page.get_by_role("button", name="Clear the filters").click()
    page.get_by_label("Agent").select_option(HOSTILE)
    seen.expect_ids(HOSTILE_ID)
    page.reload()
    seen.expect_ids(HOSTILE_ID)
    expect(page.get_by_label("Agent")).to_have_value(HOSTILE)
    page.get_by_label("Fewest tool calls").fill("2")
    page.get_by_label("Fewest tool calls").blur()
    expect(page.get_by_text("No session matches these filters.")).to_be_visible()


def test_pages(visit: Open) -> None:
    seen = visit("/")
    first = seen.ids()
    expect(seen.page.get_by_text(f"{TOTAL} in all")).to_be_visible()
    seen.page.get_by_role("button", name="Next").click()
    expect(seen.page.get_by_text("Page 2 of 2", exact=True)).to_be_visible()
    expect(seen.page.get_by_role("button", name="Next")).to_be_focused()
    second = seen.ids()
    assert len(first) == 25
    assert len({*first, *second}) == TOTAL
    assert second[-1] == "filler-00"
    assert len([name for name in (*first, *second) if name.startswith("filler")]) == FILLERS


def test_a_click_on_a_badge_opens_the_score_and_back_returns(visit: Open) -> None:
    seen = visit("/?status=completed")
    seen.row("scored-074").locator(".badge-link").click()
    expect(seen.page.get_by_role("heading", level=1)).to_have_text("scored-074")
    expect(seen.page.get_by_role("tab", name="Score")).to_have_attribute("aria-selected", "true")
    seen.page.go_back()
    expect(seen.page.get_by_role("heading", level=1)).to_have_text("Sessions")
    expect(seen.page.get_by_label("Scoring", exact=True)).to_have_value("completed")


def test_what_happens_is_shown_while_one_looks(visit: Open, world: World) -> None:
    seen = visit("/")
    badge = seen.row("live-list").locator(".badge")
    expect(badge).to_have_text("Not Scored")
    row = world.land(world.pending("live-list"))
    expect(badge).to_have_text("Pending")
    world.land(row, status="in_progress")
    expect(badge).to_have_text("Scoring")
    world.score("live-list", 51)
    expect(badge).to_contain_text("51")
    expect(badge).to_contain_class("yellow")


def test_a_hostile_name_is_only_text(visit: Open) -> None:
    seen = visit("/?search=onerror")
    assert seen.ids() == [HOSTILE_ID]
    assert seen.page.locator("main img, main script").count() == 0
    seen.row(HOSTILE_ID).locator("a.id").click()
    expect(seen.page.get_by_role("heading", level=1)).to_have_text(HOSTILE_ID)
