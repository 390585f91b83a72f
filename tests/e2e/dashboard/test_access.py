"""Every page and state: by keyboard, by screen reader, narrow and wide, light and dark."""

import pytest
from playwright.sync_api import expect

from tests.e2e.dashboard.browsing import Visit, session_path
from tests.e2e.dashboard.conftest import Open
from tests.e2e.dashboard.world import HOSTILE_ID

pytestmark = pytest.mark.e2e

LOOKS = ((360, "light"), (1400, "dark"))
GROUND = {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 28)"}
TEXTS = "main :is(.scroll:has(.texts), .listing, .prose)"
WIDER = "all => all.filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.ariaLabel ?? e.className)"
PAGES = {
    "list": "/",
    "empty list": "/?search=nothing+like+this",
    "score": session_path("scored-074"),
    "outdated": session_path("outdated"),
    "unscored": session_path("never-scored"),
    "under way": session_path("at-work"),
    "failed": session_path("broken"),
    "history": session_path("rated"),
    "conversation": session_path("scored-100", "?view=conversation"),
    "technical": session_path("scored-100", "?view=technical"),
    "hostile": session_path(HOSTILE_ID),
    "unknown": session_path("nobody"),
    "trends": "/trends",
    "runs": "/runs",
}


def test_every_page_fits_and_is_accessible(visit: Open) -> None:
    seen = visit("/")
    obstacles = {}
    for turn, (name, path) in enumerate(PAGES.items()):
        seen.go(path)
        obstacles[name] = seen.obstacles_of(LOOKS, turn) + _scrolled(seen)
    assert obstacles == {name: [] for name in PAGES}


def _scrolled(seen: Visit) -> list[str]:
    """What is read by scrolling sideways though it is no table of figures, and a ground of another scheme."""
    found = []
    for width, scheme in LOOKS:
        seen.look(width, scheme)
        found += [f"{width}: {each} scrolls" for each in seen.page.locator(TEXTS).evaluate_all(WIDER)]
        if (ground := seen.page.evaluate("getComputedStyle(document.body).backgroundColor")) != GROUND[scheme]:
            found.append(f"{scheme}: on {ground}")
    return found


def test_from_the_list_to_a_score_and_its_views_by_keyboard_alone(visit: Open) -> None:
    seen = visit("/?min_score=74&max_score=74")
    page, keys = seen.page, seen.page.keyboard
    keys.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    keys.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()
    seen.tab_to("Score of scored-074: 74 of 100, middling")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    keys.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("scored-074")
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    expect(page).to_have_title("scored-074 · evalake")
    seen.tab_to("Score")
    keys.press("ArrowRight")
    expect(page.get_by_role("tab", name="Conversation")).to_be_focused()
    expect(page.get_by_role("tabpanel", name="Conversation")).to_contain_text("kubernetes.get_pods")
    keys.press("End")
    expect(page.get_by_role("tab", name="Technical")).to_be_focused()
    expect(page.get_by_role("table", name="Stages of the session")).to_be_visible()
    keys.press("ArrowRight")
    expect(page.get_by_role("tab", name="Score")).to_have_attribute("aria-selected", "true")


def test_what_changes_is_told_to_screen_readers(visit: Open) -> None:
    page = visit("/").page
    page.get_by_label("Search").fill("scored-1")
    expect(page.get_by_role("status")).to_have_text("1 session, page 1 of 1")
    expect(page.get_by_role("link", name="Sessions", exact=True)).to_have_attribute("aria-current", "page")


def test_nothing_runs_that_is_written_into_the_page(visit: Open, address: str) -> None:
    seen = visit("/")
    page = seen.page
    answer = page.request.get(address + "/")
    policy = answer.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "script-src 'self'" in policy
    with page.expect_console_message() as refused:
        written = page.evaluate("""() => {
          const script = document.createElement("script");
          script.textContent = "window.written = true";
          document.body.append(script);
          return window.written ?? false;
        }""")
    assert written is False
    assert "Content Security Policy" in refused.value.text
    seen.wrong.clear()
