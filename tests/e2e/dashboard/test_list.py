"""Sessions: their list, the page of one, texts that mean harm, and the API's own page."""

import re

import httpx
import pytest
from playwright.sync_api import expect

from tests.e2e.dashboard.browsing import session_path
from tests.e2e.dashboard.conftest import Open
from tests.e2e.dashboard.world import FILLERS, HOSTILE, HOSTILE_ID, HUGE, SCORED, TOOLED, World

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


def test_pages(visit: Open, address: str) -> None:
    seen = visit("/")
    first = seen.ids()
    total = httpx.get(f"{address}/api/v1/sessions", timeout=600).json()["total"]
    expect(seen.page.get_by_text(f"{total} in all")).to_be_visible()
    seen.page.get_by_role("button", name="Next").click()
    expect(seen.page.get_by_text("Page 2 of 2", exact=True)).to_be_visible()
    expect(seen.page.get_by_role("button", name="Next")).to_be_focused()
    second = seen.ids()
    assert len(first) == 25
    assert len({*first, *second}) == total
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


def test_score_view_tells_everything_about_a_score(visit: Open) -> None:
    page = visit(session_path("scored-074")).page
    main = page.get_by_role("main")
    for heading in ("Score", "Analysis", "Missing tools", "Final analysis", "Alert", "This scoring"):
        expect(main.get_by_role("heading", name=heading, exact=True)).to_be_visible()
    expect(main.get_by_role("meter", name="Consistency")).to_have_attribute("value", "18")
    expect(main.get_by_text("18 / 25")).to_have_count(3)
    expect(main.get_by_text("20 / 25")).to_have_count(1)
    expect(main.get_by_role("listitem").filter(has_text="It repeated one search.")).to_be_visible()
    expect(main.get_by_text("pool exhausted <b>not bold</b>")).to_be_visible()
    written = main.get_by_role("table")
    expect(written.get_by_role("columnheader")).to_have_text(["Tool", "Its use, a | b", "Calls"])
    cells = ["get pods | wc", "12", "short", "", "none", "0 | and more"]
    expect(written.get_by_role("cell")).to_have_text(cells)
    expect(written.get_by_role("rowheader")).to_have_text(["kubectl", "<img src=x onerror=alert(1)>", "psql"])
    expect(written.locator("code")).to_have_text("get pods | wc")
    expect(main.get_by_text("| no | table |")).to_be_visible()
    expect(main.get_by_text("The pool of scored-074 was exhausted.")).to_be_visible()
    expect(main.get_by_text('"service": "checkout"')).to_be_visible()
    expect(main.locator("section", has_text="Missing tools")).to_have_text("Missing toolsNone is missing.")
    facts = main.locator("section", has_text="This scoring").locator("dl").first
    expect(facts).to_contain_text("alice@example.org")
    expect(facts).to_contain_text("42.0 s")
    expect(main.get_by_text("Outdated criteria")).to_have_count(0)


def test_tools_stand_under_what_is_said_of_them(visit: Open) -> None:
    section = visit(session_path(TOOLED)).page.locator("section", has_text="Missing tools")
    headings = ["Should have been used", "Do not exist", "Could be improved"]
    expect(section.get_by_role("heading", level=3)).to_have_text(headings)
    for heading, tool in zip(headings, ("get-logs", "memory-dump", "get-pods"), strict=True):
        under = section.locator("h3", has_text=heading).locator("xpath=following-sibling::ul[1]")
        expect(under.get_by_role("listitem")).to_have_count(1)
        expect(under).to_contain_text(f"{tool}Of {tool}")


def test_outdated_criteria_are_told(visit: Open) -> None:
    page = visit(session_path("outdated")).page
    expect(page.get_by_text("Outdated criteria", exact=True)).to_be_visible()
    expect(page.get_by_text("(outdated)")).to_be_visible()


def test_states_without_a_score_say_so(visit: Open) -> None:
    page = visit(session_path("never-scored")).page
    expect(page.get_by_text("Not scored yet")).to_be_visible()
    expect(page.get_by_role("button", name="Score session")).to_be_enabled()
    page = visit(session_path("at-work")).page
    expect(page.get_by_role("progressbar")).to_be_visible()
    expect(page.get_by_role("button", name="Scoring …")).to_have_attribute("aria-disabled", "true")
    page = visit(session_path("broken")).page
    expect(page.get_by_role("alert")).to_contain_text("the judge's answer ended in no total, 3 times")
    expect(page.get_by_role("button", name="Try again")).to_be_visible()


def test_unknown_session_is_a_message(visit: Open) -> None:
    page = visit(session_path("nobody knows me")).page
    expect(page.get_by_role("heading", level=1)).to_have_text("No such session")
    expect(page.get_by_role("alert")).to_contain_text("there is no session 'nobody knows me'")


def test_conversation_and_technical_views(visit: Open) -> None:
    page = visit(session_path("scored-100", "?view=conversation")).page
    turns = page.locator(".turn")
    expect(turns).to_have_count(4)
    expect(turns.nth(1)).to_contain_text("kubernetes.get_pods")
    expect(turns.nth(1)).to_contain_text('"namespace": "I look at the pods first."')
    expect(turns.nth(1)).to_contain_text("checkout-7f CrashLoopBackOff")
    expect(turns.nth(2)).to_contain_text("paused for two hours")
    page.get_by_role("tab", name="Technical").click()
    expect(page).to_have_url(page.url.split("?")[0] + "?view=technical")
    tools = page.get_by_role("table", name="Tools, used and available")
    expect(tools.get_by_role("row", name="kubernetes.get_pods")).to_contain_text("1")
    expect(page.get_by_text("3 min 0 s").first).to_be_visible()


def test_history_shows_earlier_scores(visit: Open) -> None:
    page = visit(session_path("rated")).page
    expect(page.locator(".badge.large")).to_contain_text("66")
    page.locator(".history").get_by_role("button").nth(1).click()
    expect(page.get_by_text("This is an earlier score")).to_be_visible()
    expect(page.locator(".badge.large")).to_contain_text("40")
    expect(page.get_by_text("Outdated criteria", exact=True)).to_be_visible()
    page.reload()
    expect(page.locator(".badge.large")).to_contain_text("40")
    page.get_by_role("button", name="Show the newest").click()
    expect(page.locator(".badge.large")).to_contain_text("66")


def test_a_person_rates_and_changes_their_mind(visit: Open) -> None:
    page = visit(session_path("scored-050")).page
    rating = page.locator("section", has=page.get_by_role("heading", name="Rated by people"))
    rating.get_by_label("Your score, 0 to 100").fill("70")
    rating.get_by_label("Why (optional)").fill(HOSTILE)
    rating.get_by_role("button").click()
    expect(rating.get_by_role("definition")).to_contain_text(HOSTILE)
    expect(rating.get_by_role("definition")).to_contain_text("70")
    expect(rating.get_by_label("Your score, 0 to 100")).to_have_value("70")
    rating.get_by_label("Your score, 0 to 100").fill("30")
    rating.get_by_role("button", name="Change my rating").click()
    expect(rating.get_by_role("definition")).to_contain_text("30")
    expect(rating.get_by_role("definition")).to_have_count(1)


@pytest.mark.parametrize("view", ["score", "conversation", "technical"])
def test_hostile_texts_stay_text(visit: Open, view: str) -> None:
    seen = visit(session_path(HOSTILE_ID, f"?view={view}"))
    page = seen.page
    expect(page.get_by_role("heading", level=1)).to_have_text(HOSTILE_ID)
    for summary in page.locator("main summary").all():
        summary.click()
    assert page.locator("main :is(img, script, iframe, object, embed, link, style, b)").count() == 0
    text = page.get_by_role("main").inner_text()
    assert HOSTILE in text
    assert "49" not in text.split(HOSTILE)[0]  # the sum in braces was not worked out
    assert seen.overflow() <= 0


def test_huge_and_deceiving_texts(visit: Open) -> None:
    page = visit(session_path(HOSTILE_ID)).page
    analysis = page.locator("section", has=page.get_by_role("heading", name="Analysis", exact=True))
    assert len(analysis.inner_text()) < len(HUGE) / 2
    expect(analysis).to_contain_text("safe\\u202egnp.exe")
    analysis.get_by_role("button", name="Show the other").click()
    assert HUGE in analysis.inner_text()


def test_the_api_can_be_tried_on_its_page(visit: Open, address: str) -> None:
    page = visit().page
    page.goto(f"{address}/reference")
    status = page.locator("#operations-reading-read_status_api_v1_status_get")
    status.get_by_role("button").first.click()
    status.get_by_role("button", name="Try it out").click()
    status.get_by_role("button", name="Execute").click()
    expect(status.locator(".live-responses-table .response-col_status").last).to_contain_text("200")
    expect(status.locator(".live-responses-table")).to_contain_text("criteria_hash")
